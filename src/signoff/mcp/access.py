"""Opens the project for each call of a tool.

A call opens the project and closes it again, so changed settings count at once, no connection is
kept while an agent thinks, and a server that is killed leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError

from signoff.app.hand_over import ensure_worker
from signoff.app.next_commands import error_message
from signoff.app.project import Project, open_project
from signoff.errors import SignoffError
from signoff.mcp.bounds import line

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
    params = session.client_params
    return line(params.client_info.name, 40) if params is not None else "unknown client"
