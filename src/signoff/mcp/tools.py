"""The tools of the server. None of them approves anything.

Each is a thin function over a use case. The docstrings and the descriptions of parameters are sent
to the model with every conversation, so they are as short as they can be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field

from signoff.app.answering import AnswerInput, answer_as_agent
from signoff.app.hand_over import wake
from signoff.app.history import MOVING, RunNews, news
from signoff.app.project import Project
from signoff.app.runs import current_row
from signoff.app.start import StartRequest
from signoff.core.outcome import Status
from signoff.documents.control_characters import json_text
from signoff.mcp.access import MOST_WAIT_SECONDS, ServerOptions, client_name, reported_errors
from signoff.mcp.bounds import page_of
from signoff.mcp.replies import NewsReply, Shown, Started, ToolOutcome, news_reply
from signoff.mcp.sign_off import ask_human, sign_off_request
from signoff.mcp.starting import start_run
from signoff.mcp.views import Part, part_of_run
from signoff.mcp.work import WorkSubmission, take_or_submit

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
STARTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)

Run = Annotated[str, Field(description="From start")]
Object = dict[str, Any]
OPTIONS_HELP = (
    "review: paths [..] or diff BASE, preset, constraints [..], intent, fix; flows: goal FILE"
)
NONE: dict[str, Any] = {}
"""No options; pydantic copies it for each call."""


@dataclass(frozen=True)
class Tools:
    """What agents can do in one project."""

    server: ServerOptions

    def all(self) -> dict[Callable[..., Any], ToolAnnotations]:
        """Returns the tools with what clients should know before they call one."""
        return {
            self.start: STARTS,
            self.wait: READS,
            self.show: READS,
            self.answer: WRITES,
            self.request_signoff: READS,
            self.work: STARTS,
        }

    async def start(
        self,
        workflow: Annotated[str, Field(description="'review' or an installed workflow")] = "review",
        options: Annotated[Object, Field(description=OPTIONS_HELP)] = NONE,
        inputs: Annotated[Object, Field(description="Workflow parameters")] = NONE,
        limits: Annotated[Object, Field(description="usd, calls, tokens, seconds")] = NONE,
        name: Annotated[str, Field(description="Run name; repeat it to retry a lost call")] = "",
        pull: Annotated[bool, Field(description="You do the agents' work, with work")] = False,
    ) -> Annotated[CallToolResult, Started]:
        """Start a review or workflow in the background, then call wait."""
        request = StartRequest(workflow, inputs, options, limits)
        with reported_errors():
            return reply(await start_run(self.server, request, name, pull=pull))

    async def wait(
        self,
        run: Run,
        cursor: Annotated[int, Field(description="From the last reply", ge=0)] = 0,
        seconds: Annotated[float, Field(description="0: default", ge=0, le=MOST_WAIT_SECONDS)] = 0,
    ) -> Annotated[CallToolResult, NewsReply]:
        """Wait until a run ends or needs someone. Returns only what changed since cursor."""
        with self.server.project() as project:
            patience = seconds or self.server.wait_seconds
            found = await wait_for_news(project, run, cursor, patience)
            return reply(news_reply(project, found, after=cursor))

    def show(
        self,
        run: Run,
        part: Annotated[Part, Field(description="text: the artifact")] = "findings",
        number: Annotated[int, Field(description="Round, or request number")] = 0,
        page: int = 1,
    ) -> Annotated[CallToolResult, Shown]:
        """Show a part of a run, page by page."""
        with self.server.project() as project:
            text = part_of_run(project, run, part, number or None)
        return reply({"run": run, "part": part, **page_of(text, page)})

    def answer(
        self,
        ctx: Context,
        request: int,
        value: Annotated[Any, Field(description="Text, option label, or labels by header")],
        digest: Annotated[str, Field(description="Of the request, from wait")],
        comment: str = "",
    ) -> Annotated[CallToolResult, ToolOutcome]:
        """Answer a question that is open to agents (by: agent). Never approves."""
        by = f"agent: {client_name(ctx.session)}"
        with self.server.project() as project:
            given = AnswerInput(value, comment, by=by, digest=digest)
            item = answer_as_agent(project, request, given)
            wake(project, item.run)
            self.server.start_worker(project)
        return reply({"run": item.run, "done": True, "message": "Recorded; call wait."})

    async def request_signoff(
        self, ctx: Context, request: int
    ) -> Annotated[CallToolResult, ToolOutcome] | InputRequiredResult:
        """Show a pending request to the user, who decides outside. Then call wait."""
        with self.server.project() as project:
            found = sign_off_request(project, request, self.server.page())
        asked = await ask_human(ctx, found, self.server.dialog_seconds)
        return asked if isinstance(asked, InputRequiredResult) else reply(asked)

    async def work(
        self,
        run: Run,
        item: Annotated[int, Field(description="0: the only one")] = 0,
        result: Annotated[str, Field(description="To submit; text or JSON")] = "",
        failure: Annotated[str, Field(description="Why it cannot be done")] = "",
        page: Annotated[int, Field(description="Of the prompt")] = 1,
    ) -> Annotated[CallToolResult, ToolOutcome]:
        """Take a pulled run's open work, or submit a result. The engine checks it."""
        with self.server.project() as project:
            return reply(
                await take_or_submit(project, run, WorkSubmission(item, result, failure), page)
            )


def reply(values: Any) -> CallToolResult:
    """Returns an answer as structured content, and as the same JSON for older clients."""
    return CallToolResult(
        content=[TextContent(type="text", text=json_text(values, separators=(",", ":")))],
        structured_content=values,
    )


LOOK_SECONDS = 0.25
"""How often to look for commits of other processes."""


async def wait_for_news(project: Project, run: str, after: int, seconds: float) -> RunNews:
    """Returns what changed since commit `after`, once the run is at rest or the time is over.

    While a run is driven there is always something new, and each look would cost the agent a call.
    """
    clock = project.clock
    until = clock.monotonic() + seconds
    while not await run_sync(_needs_attention, project, run, after):
        left = until - clock.monotonic()
        if left <= 0:
            break
        await clock.sleep(min(LOOK_SECONDS, left))
    return await run_sync(news, project, run, after)


def _needs_attention(project: Project, run: str, after: int) -> bool:
    row = current_row(project, project.store.row(run))
    if row.status in MOVING:
        return False
    # A run that waits continues by itself: after an answer, or at its time.
    return row.head > after or row.status not in (Status.WAITING, Status.PARKED)
