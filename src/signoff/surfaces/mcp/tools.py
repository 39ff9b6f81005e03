"""The tools of the server. None of them approves anything.

Each is a thin function over a use case. The docstrings and the descriptions of parameters are sent
to the model with every conversation, so they are as short as they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from signoff.app.json_documents import ledger_line
from signoff.app.people import external_work
from signoff.app.people.answering import AnswerInput, answer_as_agent, find_item, title_of
from signoff.app.runs.history import (
    MOVING,
    RunNews,
    artifact,
    changes,
    form_of,
    load_state,
    need_review,
    news,
)
from signoff.app.runs.next_commands import inbox_command
from signoff.app.runs.runs import current_row
from signoff.app.runs.show import show
from signoff.app.runs.start import StartPlan, StartRequest, plan_named
from signoff.app.settings.agents import refuse_not_ready
from signoff.app.settings.project import Project
from signoff.app.workers.hand_over import hand_over, wake
from signoff.core import graph
from signoff.core.amounts import format_spend
from signoff.core.digest import SHORT
from signoff.core.errors import InvalidAnswer, UsageError
from signoff.core.events import ANY_AGENT
from signoff.core.outcome import FINAL, Status
from signoff.core.requests import AnswerForm, ItemState, is_open_to_agents, options_of, request_word
from signoff.documents.control_characters import json_text, shown_text
from signoff.review.pure.finding import Finding, describe_equal, group_equal
from signoff.review.pure.history import ReviewHistory, Version, describe_status
from signoff.runtime.run_inbox import BY_HUMAN
from signoff.runtime.store_port import InboxItem, RunRow
from signoff.surfaces.mcp import access
from signoff.surfaces.mcp.access import MOST_WAIT_SECONDS, ServerOptions, line

Dialog = types.ElicitRequestURLParams | types.ElicitRequestFormParams

READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
STARTS = types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)

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

    def all(self) -> dict[Callable[..., Any], types.ToolAnnotations]:
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
    ) -> types.CallToolResult:
        """Start a review or workflow in the background, then call wait."""
        request = StartRequest(workflow, inputs, options, limits)
        with access.reported_errors():
            return reply(await start_run(self.server, request, name, pull=pull))

    async def wait(
        self,
        run: Run,
        cursor: Annotated[int, Field(description="From the last reply", ge=0)] = 0,
        seconds: Annotated[float, Field(description="0: default", ge=0, le=MOST_WAIT_SECONDS)] = 0,
    ) -> types.CallToolResult:
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
    ) -> types.CallToolResult:
        """Show a part of a run, page by page."""
        with self.server.project() as project:
            text = part_of_run(project, run, part, number or None)
        return reply({"run": run, "part": part, **access.page_of(text, page)})

    def answer(
        self,
        ctx: Context,
        request: int,
        value: Annotated[Any, Field(description="Text, option label, or labels by header")],
        digest: Annotated[str, Field(description="Of the request, from wait")],
        comment: str = "",
    ) -> types.CallToolResult:
        """Answer a question that is open to agents (by: agent). Never approves."""
        by = f"agent: {access.client_name(ctx.session)}"
        with self.server.project() as project:
            given = AnswerInput(value, comment, by=by, digest=digest)
            item = answer_as_agent(project, request, given)
            wake(project, item.run)
            self.server.start_worker(project)
        return reply({"run": item.run, "done": True, "message": "Recorded; call wait."})

    async def request_signoff(
        self, ctx: Context, request: int
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Show a pending request to the user, who decides outside. Then call wait."""
        with self.server.project() as project:
            found = sign_off_request(project, request, self.server.page())
        asked = await ask_human(ctx, found, self.server.dialog_seconds)
        return asked if isinstance(asked, types.InputRequiredResult) else reply(asked)

    async def work(
        self,
        run: Run,
        item: Annotated[int, Field(description="0: the only one")] = 0,
        result: Annotated[str, Field(description="To submit; text or JSON")] = "",
        failure: Annotated[str, Field(description="Why it cannot be done")] = "",
        page: Annotated[int, Field(description="Of the prompt")] = 1,
    ) -> types.CallToolResult:
        """Take a pulled run's open work, or submit a result. The engine checks it."""
        with self.server.project() as project:
            answer = AnswerInput(failure or result, by="agent", failed=bool(failure))
            return reply(await take_or_submit(project, run, item or None, answer, page))


def reply(values: Any) -> types.CallToolResult:
    """Returns an answer as structured content, and as the same JSON for older clients."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json_text(values, separators=(",", ":")))],
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


MOST_STEPS = 12
MOST_WARNINGS = 3


async def start_run(
    server: ServerOptions, request: StartRequest, name: str, *, pull: bool
) -> dict[str, Any]:
    """Starts a run and returns its handle; a retry with the same name returns the same run."""
    # In a thread, as everything here that reads files or asks agents: other calls of the client
    # must not wait.
    planned = await run_sync(plan_named, server.cwd, server.environment, request)
    if not pull:
        await run_sync(lambda: refuse_not_ready(planned.not_ready()))
    with planned.open(server.cwd, server.environment) as project:
        project.for_agent = True
        row = await run_sync(_same_run, project, planned, name)
        if row is None and pull:
            options = {"name": name or None, "limits": planned.own_limits}
            started = await external_work.start_pulled(
                project, planned.target, request.params, **options
            )
            row = started.row
        elif row is None:
            row = await run_sync(lambda: hand_over(project, planned, name=name or None))
        if not pull:
            await run_sync(server.start_worker, project)
        return _start_reply(planned, row, pull=pull)


def _same_run(project: Project, planned: StartPlan, name: str) -> RunRow | None:
    """Returns the run that a call with this name has started before, if it was the same call.

    The answer to a call can get lost: the client gives up, or the server is killed.
    """
    # Only a name makes a call repeatable; without one, each call is meant as a new run.
    if not name or not project.has_run(name):
        return None
    row = project.store.row(name)
    return row if row.definition == planned.target.workflow.digest else None


def _start_reply(planned: StartPlan, row: RunRow, *, pull: bool) -> dict[str, Any]:
    dry_run, workflow = planned.dry_run(), planned.target.workflow
    calls = (dry_run.facts.get("calls") or {}) if dry_run is not None else {}
    warnings = (*planned.warnings, *workflow.warnings)[:MOST_WARNINGS]
    after = f"work(run={row.name!r})" if pull else f"wait(run={row.name!r}, cursor={row.head})"
    return access.without_empty(
        {
            "run": row.name,
            "status": row.status.value,
            "cursor": row.head,
            "steps": [line(each, LONGEST_LABEL) for each in list(workflow.steps)[:MOST_STEPS]],
            "most_calls": calls.get("at_most"),
            "limits": planned.limits.to_json(),
            "warnings": [line(each, LONGEST_TEXT) for each in warnings],
            "next": after,
        }
    )


PROMPT_CHARACTERS = 20_000
"""The size of a page of a prompt: workers need all of it, so pages are larger than elsewhere."""
LONGEST_PROBLEM = 1_500
MOST_ITEMS = 20


async def take_or_submit(
    project: Project, run: str, number: int | None, answer: AnswerInput, page: int
) -> dict[str, Any]:
    """Returns the open work of a run, after a submission unless the answer is empty.

    An agent that works alone need not count: without a number, the only open item is meant.
    """
    row = project.store.row(run)
    if ANY_AGENT not in load_state(project, row).stand_ins:
        # Other requests for work are for humans who review in place of an agent.
        raise UsageError(f"the work of run {run!r} is not handed out; it was not started to be")
    if not answer.value:
        return _work_reply(await external_work.next_work(project, run), number, page)
    which = None if number is None else str(number)
    try:
        return _work_reply(await external_work.submit(project, run, which, answer), None, 1)
    except InvalidAnswer as error:
        # Nothing has changed, and what is open tells the agent what to do instead.
        open_work = _work_reply(external_work.run_status(project, run), None, 1, is_shown=False)
        return {**open_work, "done": False, "message": line(str(error), LONGEST_PROBLEM)}


def _work_reply(
    status: external_work.RunStatus, number: int | None, page: int, *, is_shown: bool = True
) -> dict[str, Any]:
    row, verdict = status.row, status.verdict
    items = [each for each in status.work if number in (None, each.number)]
    found: dict[str, Any] = {"run": row.name, "status": row.status.value}
    if verdict is not None:
        problem = line(verdict.problem, LONGEST_PROBLEM)
        found |= {"done": verdict.accepted, "message": problem}
    elif items and is_shown:
        found |= access.page_of(items[0].prompt, page, PROMPT_CHARACTERS)
    found["work"] = [_item(each) for each in items[:MOST_ITEMS]]
    found["waits_for"] = [int(each["number"]) for each in status.people[:MOST_ITEMS]]
    return access.without_empty(found)


def _item(item: external_work.WorkItem) -> dict[str, Any]:
    return access.without_empty(
        {
            "item": item.number,
            "step": line(item.step, LONGEST_LABEL),
            "attempt": item.attempt,
            "feedback": line(item.feedback or "", LONGEST_PROBLEM),
            "schema": dict(item.schema) if item.schema else None,
            "must_hold": [line(each, LONGEST_TEXT) for each in item.must_hold],
        }
    )


# A client answers for its user, and some answer by themselves. So what comes back from a dialog
# only tells whether the user has seen the request. The decision is made on the page or on the
# command line, where the user is known; nothing that a client or a model sends can replace it.

KEY = "sign_off"
"""The name of our question among those that a stateless client answers."""
LONGEST_SUMMARY = 600
SEEN = {"type": "object", "properties": {}}
"""The form has no field: there is nothing in it that a client could fill in for its user."""

_MESSAGES = {
    "accept": "The user has seen the request. The decision is made outside; call wait for it.",
    "decline": "Declined, by the user or by the client. Do not ask again; pass on where to decide.",
    "cancel": "The dialog was closed without an answer. Pass on where to decide, then call wait.",
}


@dataclass(frozen=True)
class SignOffRequest:
    """What a human is asked to decide, and where."""

    item: InboxItem
    summary: str
    """What the dialog shows: the question, what was asked for, and its digest."""
    link: str
    """The page of the request; empty if no page is served."""

    @property
    def command(self) -> str:
        """Shows it on the command line, with how to decide it; decides nothing itself.

        The commands that decide are not given to an agent, which might run them.
        """
        return inbox_command(self.item.id)

    def dialog(self, *, opens_links: bool) -> Dialog:
        """Returns the dialog for a client: a link to the page, or a notice."""
        if opens_links and self.link:
            name = f"signoff-{self.item.run}-{self.item.id}"
            return types.ElicitRequestURLParams(
                message=self.summary, url=self.link, elicitation_id=name
            )
        where = f"Decide at {self.link}" if self.link else f"To decide, run: {self.command}"
        return types.ElicitRequestFormParams(
            message=f"{self.summary}\n{where}", requested_schema=dict(SEEN)
        )

    def reply(self, message: str) -> dict[str, Any]:
        """Returns the answer of the tool."""
        is_open = self.item.state is ItemState.OPEN
        found: dict[str, Any] = {"run": self.item.run, "done": not is_open, "message": message}
        found |= {"link": self.link} if self.link else {}
        return found | ({"command": self.command} if is_open else {})


def sign_off_request(project: Project, number: int, page: str) -> SignOffRequest:
    """Returns a request of the inbox as a human is shown it."""
    item = project.store.item(number)
    title = title_of(form_of(project, item))
    text = line(f"{title} {item.prompt}".strip(), LONGEST_SUMMARY)
    head = f"signoff: run {item.run} needs your decision."
    return SignOffRequest(
        item,
        summary=f"{head}\n{text}\ndigest {item.digest[:SHORT]}",
        link=f"{page.rstrip('/')}/requests/{item.id}" if page else "",
    )


async def ask_human(
    ctx: Context[Any, Any], request: SignOffRequest, patience: float
) -> dict[str, Any] | types.InputRequiredResult:
    """Shows a request to the human, in the best way that their client has."""
    item = request.item
    if item.state is not ItemState.OPEN:
        # A dialog about something that is decided already would ask the human to decide it again.
        return request.reply(f"Request #{item.id} is {item.state}; nothing to sign off.")
    capabilities = ctx.client_capabilities
    dialogs = capabilities.elicitation if capabilities is not None else None
    if dialogs is None:
        how = f"run `{request.command}` in a terminal"
        how = f"open {request.link} or {how}" if request.link else how
        return request.reply(f"Ask the user to {how}, and decide there. Then call wait.")
    params = request.dialog(opens_links=dialogs.url is not None)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return _stateless(ctx, request, params)
    action = await _asked(ctx, params, patience)
    return request.reply(_MESSAGES[action])


def _stateless(
    ctx: Context[Any, Any],
    request: SignOffRequest,
    params: Dialog,
) -> dict[str, Any] | types.InputRequiredResult:
    """Asks through the result, as clients without a session need it; they call again with it."""
    answers = ctx.input_responses
    if answers is None:
        return types.InputRequiredResult(input_requests={KEY: types.ElicitRequest(params=params)})
    answer = answers.get(KEY)
    action = answer.action if isinstance(answer, types.ElicitResult) else "cancel"
    return request.reply(_MESSAGES[action])


async def _asked(
    ctx: Context[Any, Any],
    params: Dialog,
    patience: float,
) -> str:
    """Returns what became of a dialog; a client that fails or never answers has closed it."""
    session, result = ctx.session, None
    with anyio.move_on_after(patience):
        try:
            result = await session.send_request(
                types.ElicitRequest(params=params),
                types.ElicitResult,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except (MCPError, ValueError):
            # The client offers dialogs and refuses this one, as some do without a terminal.
            return "cancel"
    return result.action if result is not None else "cancel"


# What the tools answer: the news of a run as plain values, and its parts as text. Fields without
# news are left out: an agent pays for every token of every answer.

MOST_REQUESTS = 3
"""Pending requests that an answer lists; the others are counted."""
MOST_DECISIONS = 3
LONGEST_TEXT = 160
"""Characters of a request, a reason or a decision."""
LONGEST_LABEL = 40
EXPLAINED = frozenset(Status) - {Status.RUNNING, Status.WAITING, Status.COMPLETED}
"""Statuses whose reason an agent needs to know; a queued run has one if no worker can take it."""
MOST_OPTIONS = 6


def news_reply(project: Project, news: RunNews, *, after: int) -> dict[str, Any]:
    """Returns the news of a run; what is as it was at the cursor is left out."""
    before, now, row = news.before, news.now, news.row
    # Counts and no texts: the agent asks for the findings it wants, and pays only for those.
    changed = now.open != before.open
    spent = {"calls": now.spend.calls, "tokens": now.spend.known_tokens, "usd": now.spend.known_usd}
    # Amounts that no call reported are left out.
    spent = {name: round(value, 4) for name, value in spent.items() if value}
    reply = access.without_empty(
        {
            "run": row.name,
            "status": row.status.value,
            "cursor": row.head,
            "step": now.step if now.step != before.step else "",
            "round": now.round if now.round != before.round else None,
            "reason": line(row.reason, LONGEST_TEXT) if row.status in EXPLAINED else "",
            "findings": access.without_empty(news.findings) if changed else {},
            "spend": spent if now.spend != before.spend else {},
            "decisions": [
                line(f"{each.step}: {each.value} by {each.by} {each.text}", LONGEST_TEXT)
                for each in news.decisions[-MOST_DECISIONS:]
            ],
            "waits_for": [
                request_reply(project, each, handed_out=news.handed_out)
                for each in news.requests[:MOST_REQUESTS]
            ],
            "next": next_step(project, news),
        }
    )
    reply["changed"] = row.head > after
    return reply


def request_reply(project: Project, item: InboxItem, *, handed_out: bool) -> dict[str, Any]:
    """Returns a pending request in a few words."""
    form = form_of(project, item)
    by_agent = is_open_to_agents(form)
    by_worker = handed_out and is_work(item)
    return access.without_empty(
        {
            "request": item.id,
            "kind": item.kind.value,
            "by": "worker" if by_worker else "agent" if by_agent else "human",
            "text": line(title_of(form) or item.prompt, LONGEST_TEXT),
            "options": _labels(form) if by_agent else [],
            "digest": item.digest[:SHORT] if by_agent else "",
        }
    )


def _labels(form: Mapping[str, Any]) -> list[str]:
    return [line(each["label"], LONGEST_LABEL) for each in options_of(form)[:MOST_OPTIONS]]


def is_work(item: InboxItem) -> bool:
    """Tells whether a request replaces an agent's call."""
    return item.kind.answer_form is AnswerForm.WORK and item.effect.endswith(BY_HUMAN)


def next_step(project: Project, news: RunNews) -> str:
    """Returns the call that an agent should make next; empty if it should just wait."""
    # Models follow a stated next step more reliably than a general instruction, and never guess a
    # cursor.
    status = news.row.status
    if status in FINAL:
        return "ended; show has the findings and the diff"
    if status is Status.WAITING and news.requests:
        first = news.requests[0]
        if news.handed_out and is_work(first):
            return f"work(run={news.row.name!r})"
        if is_open_to_agents(form_of(project, first)):
            return f"answer(request={first.id}) or ask the user"
        return f"request_signoff(request={first.id}), then wait"
    if status is Status.QUEUED and news.row.reason:
        return "wait again; if it stays queued, tell the user to start a worker"
    if status in (Status.RUNNING, Status.QUEUED, Status.WAITING, Status.PARKED):
        return ""
    return "stopped; tell the user, who can resume it"


Part = Literal["findings", "diff", "text", "plan", "spend", "request"]
LONGEST_FINDING = 400
LONGEST_QUOTE = 160
LONGEST_SHOWN = 4_000
"""Characters of each value that a request shows; the page shows all of it."""


def part_of_run(project: Project, run: str | None, part: Part, number: int | None) -> str:
    """Returns a part of a run; `number` is a round, or the number of a request."""
    return _VIEWS[part](project, run, number)


def _findings(project: Project, run: str | None, number: int | None) -> str:
    _, history = need_review(project, run)
    found = [
        each
        for each in history.findings
        if number is None or any(iteration == number for iteration, _ in each.history)
    ]
    groups = group_equal(history.listed(found))
    return "\n".join(_finding(history, each) for each in groups) or "no findings"


def _finding(history: ReviewHistory, group: Sequence[Finding]) -> str:
    finding = group[0]
    place = line(history.place(finding), LONGEST_QUOTE)
    what = line(finding.finding, LONGEST_FINDING)
    head = f"{place}: {finding.severity} {finding.constraint}: {what}"
    quote = "" if finding.omission else f'\n  "{line(finding.quote, LONGEST_QUOTE)}"'
    fix = finding.suggested_fix and f"\n  fix: {line(finding.suggested_fix, LONGEST_FINDING)}"
    equal = f"\n  {describe_equal(group)}" if len(group) > 1 else ""
    return f"{head}{quote}{fix}\n  {finding.id}, {describe_status(finding)}{equal}"


def _diff(project: Project, run: str | None, number: int | None) -> str:
    row, history = need_review(project, run)
    if number is None:
        versions = history.versions
        pairs = [(versions[0], versions[-1])] if len(versions) > 1 else []
    else:
        pairs = changes(history, row.name, number)
    lines = [line for pair in pairs for line in _hunks(history, *pair)]
    return "\n".join(lines) or "nothing was changed"


def _hunks(history: ReviewHistory, before: Version, after: Version) -> Iterator[str]:
    for path, hunks in history.changes(before, after).items():
        name = history.name_of(path)
        yield f"--- a/{name}\n+++ b/{name}"
        for hunk in hunks:
            answers = f"  # answers {', '.join(hunk.findings)}" if hunk.findings else ""
            yield f"{hunk.header}{answers}"
            yield from hunk.lines


def _text(project: Project, run: str | None, number: int | None) -> str:
    row, history = need_review(project, run)
    version = artifact(history, row.name, number)
    files = {history.name_of(path): text for path, text in version.files.items()}
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join(f"==> {name} <==\n{text}" for name, text in files.items())


def _plan(project: Project, run: str | None, _number: int | None) -> str:
    row = project.run(run)
    limits = load_state(project, row).limits.to_json()
    allowed = ", ".join(f"{name} {value:g}" for name, value in limits.items())
    return f"{graph.text(project.find_again(row).workflow)}\nlimits: {allowed or 'none'}"


def _spend(project: Project, run: str | None, _number: int | None) -> str:
    details = show(project, run)
    entries = map(ledger_line, details.ledger)
    lines = [", ".join(f"{k} {v}" for k, v in each.items() if v is not None) for each in entries]
    return "\n".join([format_spend(details.timeline.spend), *lines])


def _request(project: Project, run: str | None, number: int | None) -> str:
    # A number alone is enough for a human. An agent also names its run, so a slip shows another
    # run's request to nobody.
    item = find_item(project, run) if number is None else project.store.item(number)
    if run is not None and project.run(run).name != item.run:
        raise UsageError(f"request #{item.id} belongs to run {item.run!r}, not {run!r}")
    form = form_of(project, item)
    head = (
        f"#{item.id} {request_word(form)} of {item.run}, {item.state}, digest {item.digest[:SHORT]}"
    )
    return "\n".join([head, item.prompt, *_details(form)])


def _details(form: Mapping[str, Any]) -> Iterator[str]:
    for option in form.get("options") or ():
        about = f" ({option['description']})" if option.get("description") else ""
        yield f"option: {option['label']}{about}"
    for question in form.get("questions") or ():
        yield f"question {question['header']}: {question['question']}"
    if form.get("path"):
        yield f"file: {form['path']}"
    for name, value in (form.get("shown") or {}).items():
        text = "none" if value is None else shown_text(value)
        more = f"\n[{len(text) - LONGEST_SHOWN} more characters]" if text[LONGEST_SHOWN:] else ""
        yield f"{name}:\n{text[:LONGEST_SHOWN]}{more}"


_VIEWS: Mapping[str, Callable[[Project, str | None, int | None], str]] = {
    "findings": _findings,
    "diff": _diff,
    "text": _text,
    "plan": _plan,
    "spend": _spend,
    "request": _request,
}
