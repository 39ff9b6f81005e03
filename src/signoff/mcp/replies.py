"""What the tools answer, as plain values with the schemas that clients are given.

Fields without news are left out: an agent pays for every token of every answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from signoff.app.answering import title_of
from signoff.app.history import RunNews, form_of
from signoff.app.project import Project
from signoff.core.digest import SHORT
from signoff.core.outcome import FINAL, Status
from signoff.core.requests import AnswerForm, is_open_to_agents, options_of
from signoff.core.spend import Spend
from signoff.mcp.bounds import line, without_empty
from signoff.runtime.run_inbox import BY_HUMAN
from signoff.runtime.store_port import InboxItem

MOST_REQUESTS = 3
"""Pending requests that an answer lists; the others are counted."""
MOST_DECISIONS = 3
LONGEST_TEXT = 160
"""Characters of a request, a reason or a decision."""
LONGEST_LABEL = 40
EXPLAINED = frozenset(Status) - {Status.RUNNING, Status.WAITING, Status.COMPLETED}
"""Statuses whose reason an agent needs to know; a queued run has one if no worker can take it."""
MOST_OPTIONS = 6


class Started(TypedDict, total=False):
    """A run that was started."""

    run: str
    status: str
    cursor: int
    steps: list[str]
    most_calls: int
    limits: dict[str, float]
    warnings: list[str]
    next: str


class NewsReply(TypedDict, total=False):
    """What has changed in a run."""

    run: str
    status: str
    cursor: int
    changed: bool
    step: str
    round: int
    reason: str
    findings: dict[str, dict[str, int]]
    spend: dict[str, float]
    decisions: list[str]
    waits_for: list[dict[str, Any]]
    next: str


class Shown(TypedDict, total=False):
    """A page of a run's findings, diff, text, plan, spend or request."""

    run: str
    part: str
    page: int
    pages: int
    text: str


class ToolOutcome(TypedDict, total=False):
    """What became of an answer, a request for a sign-off, or work."""

    run: str
    status: str
    done: bool
    message: str
    link: str
    command: str
    work: list[dict[str, Any]]


def news_reply(project: Project, news: RunNews, *, after: int) -> NewsReply:
    """Returns the news of a run; what is as it was at the cursor is left out."""
    before, now, row = news.before, news.now, news.row
    found = {"open": news.open_findings, "new": news.new_findings, "gone": news.gone_findings}
    changed = now.open != before.open
    reply: Any = without_empty(
        {
            "run": row.name,
            "status": row.status.value,
            "cursor": row.head,
            "step": now.step if now.step != before.step else "",
            "round": now.round if now.round != before.round else None,
            "reason": line(row.reason, LONGEST_TEXT) if row.status in EXPLAINED else "",
            "findings": without_empty(found) if changed else {},
            "spend": spend_reply(now.spend) if now.spend != before.spend else {},
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
    return reply  # type: ignore[no-any-return]


def spend_reply(spend: Spend) -> dict[str, float]:
    """Returns what a run has cost; amounts that no call reported are left out."""
    amounts = {"calls": spend.calls, "tokens": spend.known_tokens, "usd": spend.known_usd}
    return {name: round(value, 4) for name, value in amounts.items() if value}


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
