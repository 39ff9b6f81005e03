"""Opens the project for each call of a tool.

A call opens the project and closes it again, so changed settings count at once, no connection is
kept while an agent thinks, and a server that is killed leaves nothing behind.

What agents get is short and harmless: texts are bounded, control characters escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError

from signoff.app.runs.next_commands import error_message
from signoff.app.settings.project import Project, open_project
from signoff.app.workers.hand_over import ensure_worker
from signoff.core.errors import SignoffError
from signoff.core.one_line import one_line
from signoff.documents.control_characters import escape_controls

LONGEST_ERROR = 1_000

DEFAULT_WAIT_SECONDS = 50.0
"""Most clients give up on a call after a minute."""
MOST_WAIT_SECONDS = 600.0


@dataclass(frozen=True)
class ServerOptions:
    """Where a server works, and how long its calls may take."""

    cwd: Path
    environment: Mapping[str, str]
    wait_seconds: float = DEFAULT_WAIT_SECONDS
    """How long `wait` waits unless the agent says otherwise."""
    dialog_seconds: float = DEFAULT_WAIT_SECONDS
    """How long a client may show a dialog before the agent continues without it."""
    page: Callable[[], str] = str
    """Returns the address of the project's web page; empty while none is served."""
    start_worker: Callable[[Project], None] = ensure_worker
    """Makes sure that some process drives the runs that were handed over."""

    @contextmanager
    def project(self) -> Iterator[Project]:
        """Opens the project; errors that a user can fix are reported to the agent."""
        # Whoever calls acts as an agent from here on: every use case below refuses what only a
        # human decides.
        with reported_errors(), open_project(self.cwd, self.environment) as project:
            project.for_agent = True
            yield project


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turns errors that have a message for users into errors of the tool."""
    try:
        yield
    except SignoffError as error:
        raise ToolError(line(error_message(error), LONGEST_ERROR)) from error
    except OSError as error:
        raise ToolError(line(error.strerror or error, LONGEST_ERROR)) from error


def client_name(session: Any) -> str:
    """Returns who an agent is, as its client reports it; a name, not a proof."""
    # Recorded with an answer, and never used to decide what the client may do.
    params = session.client_params
    return line(params.client_info.name, 40) if params is not None else "unknown client"


# Findings, artifacts and questions are written by models. Their text can be megabytes long, and a
# client may print it on a terminal.

PAGE_CHARACTERS = 6_000
"""The size of a page of `show`, about 1,700 tokens."""


def line(text: object, most: int) -> str:
    """Returns an untrusted text on one line of at most `most` characters."""
    # Cut before it is escaped, too: a megabyte of control characters would become six.
    return one_line(escape_controls(one_line(str(text), most)), most)


def page_of(text: str, number: int, size: int = PAGE_CHARACTERS) -> dict[str, Any]:
    """Returns a page of an untrusted text; a number past the end gives the last page."""
    safe = escape_controls(text)
    pages = max(1, -(-len(safe) // size))
    number = min(max(1, number), pages)
    return {"page": number, "pages": pages, "text": safe[(number - 1) * size : number * size]}


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Returns a reply without what it has nothing to say about."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {}, ())}
