"""What clients can list: a prompt for each installed workflow, and the runs with their artifacts.

Both are read when a client asks for them, so a workflow that was just installed and a run that was
just started are there without a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp_types import GetPromptResult, PromptArgument, PromptMessage, TextContent
from mcp_types import Prompt as ListedPrompt
from mcp_types import Resource as ListedResource

from signoff.app.history import news
from signoff.app.home import find_home
from signoff.app.runs import list_runs
from signoff.app.start import startable
from signoff.documents.control_characters import escape_controls, json_text
from signoff.errors import UnknownName
from signoff.mcp.access import ServerOptions
from signoff.mcp.bounds import line
from signoff.mcp.replies import news_reply
from signoff.mcp.views import Part, part_of_run

MOST_RUNS = 20
"""Runs that are listed as resources; all others can be read by their name."""
MOST_CHARACTERS = 200_000
"""Characters of a resource."""
LONGEST_DESCRIPTION = 120
LONGEST_TASK = 4_000

_PROMPT = """\
Run the signoff workflow {name!r} with the signoff tools:
1. start(workflow={name!r}); ask for missing options and inputs.
2. wait(run, cursor) until it has ended or needs someone; pass on the cursor of each reply.
3. If a human has to decide, call request_signoff and wait again. Never decide yourself, and do not
   run commands that approve, reject or answer.
4. When it has ended, report the open findings and the diff with show.
{task}"""


def workflow_prompts(options: ServerOptions) -> list[ListedPrompt]:
    """Returns a prompt for each workflow that can be started by name."""
    task = PromptArgument(name="task", description="What to do, in your words", required=False)
    return [
        ListedPrompt(
            name=name, description=line(text, LONGEST_DESCRIPTION) or None, arguments=[task]
        )
        for name, text in _workflows(options).items()
    ]


def workflow_prompt(options: ServerOptions, name: str, task: str) -> GetPromptResult:
    """Returns the prompt of a workflow; raises `UnknownName`."""
    known = _workflows(options)
    if name not in known:
        raise UnknownName("prompt", name, known)
    text = _PROMPT.format(name=name, task=f"The task: {task[:LONGEST_TASK]}" if task else "")
    message = PromptMessage(role="user", content=TextContent(type="text", text=text.strip()))
    return GetPromptResult(description=known[name] or None, messages=[message])


def _workflows(options: ServerOptions) -> dict[str, str]:
    found = startable(options.cwd, options.environment).by_name()
    return {name: entry.description for name, entry in found.items()}


def run_resources(options: ServerOptions) -> list[ListedResource]:
    """Returns the latest runs."""
    if find_home(options.cwd, options.environment) is None:
        return []
    with options.project() as project:
        rows = list_runs(project, limit=MOST_RUNS)
    return [
        ListedResource(
            uri=f"signoff://runs/{row.name}",
            name=row.name,
            description=line(f"{row.workflow}, {row.status.value}", LONGEST_DESCRIPTION),
            mime_type="application/json",
        )
        for row in rows
    ]


def add_run_resources(server: MCPServer[Any], options: ServerOptions) -> None:
    """Lets clients read a run, its artifact, and what each round changed."""

    @server.resource("signoff://runs/{run}", name="run", mime_type="application/json")
    def run_state(run: str) -> str:
        """A run: status, findings, spend and what it waits for."""
        with _readable(), options.project() as project:
            reply = news_reply(project, news(project, run), after=0)
        return json_text(reply, indent=1)

    @server.resource("signoff://runs/{run}/artifact", name="artifact", mime_type="text/plain")
    def artifact(run: str) -> str:
        """The artifact: the version that passed, else the best reviewed, else the latest."""
        return _part(options, run, "text", None)

    @server.resource("signoff://runs/{run}/rounds/{number}", name="diff", mime_type="text/x-diff")
    def round_diff(run: str, number: int) -> str:
        """What the fixes of a round changed."""
        return _part(options, run, "diff", number)


def _part(options: ServerOptions, run: str, part: Part, number: int | None) -> str:
    with _readable(), options.project() as project:
        return escape_controls(part_of_run(project, run, part, number))[:MOST_CHARACTERS]


@contextmanager
def _readable() -> Iterator[None]:
    """Reports errors of the project as errors of the resource."""
    try:
        yield
    except ToolError as error:
        raise ResourceError(str(error)) from error
