"""What the tools answer: the news of a run as plain values, and its parts as text.

Fields without news are left out: an agent pays for every token of every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from signoff.app.json_documents import ledger_line
from signoff.app.people.answering import find_item, title_of
from signoff.app.runs.history import RunNews, artifact, changes, form_of, load_state, need_review
from signoff.app.runs.show import show
from signoff.app.settings.project import Project
from signoff.core import graph
from signoff.core.amounts import format_spend
from signoff.core.digest import SHORT
from signoff.core.errors import UsageError
from signoff.core.outcome import FINAL, Status
from signoff.core.requests import AnswerForm, is_open_to_agents, options_of, request_word
from signoff.documents.control_characters import shown_text
from signoff.review.pure.finding import Finding, describe_equal, group_equal
from signoff.review.pure.history import ReviewHistory, Version, describe_status
from signoff.runtime.run_inbox import BY_HUMAN
from signoff.runtime.store_port import InboxItem
from signoff.surfaces.mcp.access import line, without_empty

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
    reply = without_empty(
        {
            "run": row.name,
            "status": row.status.value,
            "cursor": row.head,
            "step": now.step if now.step != before.step else "",
            "round": now.round if now.round != before.round else None,
            "reason": line(row.reason, LONGEST_TEXT) if row.status in EXPLAINED else "",
            "findings": without_empty(news.findings) if changed else {},
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
    return without_empty(
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
