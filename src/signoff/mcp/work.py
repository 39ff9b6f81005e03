"""Hands out the work of a pulled run to the agent, and takes its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signoff.app.answering import AnswerInput
from signoff.app.external_work import RunStatus, WorkItem, next_work, run_status, submit
from signoff.app.history import load_state
from signoff.app.project import Project
from signoff.core.events import ANY_AGENT
from signoff.errors import InvalidAnswer, UsageError
from signoff.mcp.bounds import line, page_of, without_empty
from signoff.mcp.replies import LONGEST_LABEL, LONGEST_TEXT

PROMPT_CHARACTERS = 20_000
"""The size of a page of a prompt: workers need all of it, so pages are larger than elsewhere."""
LONGEST_PROBLEM = 1_500
MOST_ITEMS = 20


@dataclass(frozen=True)
class WorkSubmission:
    """What an agent hands in; nothing if it only asks for work."""

    item: int
    """0 if there is only one."""
    result: str
    failure: str

    @property
    def is_empty(self) -> bool:
        """Whether the agent asks for work instead."""
        return not self.result and not self.failure


async def take_or_submit(
    project: Project, run: str, submission: WorkSubmission, page: int
) -> dict[str, Any]:
    """Returns the open work of a run, after a submission if there is one."""
    row = project.store.row(run)
    if ANY_AGENT not in load_state(project, row).stand_ins:
        # Other requests for work are for humans who review in place of an agent.
        raise UsageError(f"the work of run {run!r} is not handed out; it was not started to be")
    number = submission.item or None
    if submission.is_empty:
        return _reply(await next_work(project, run), number, page)
    answer = AnswerInput(
        submission.failure or submission.result, by="agent", failed=bool(submission.failure)
    )
    which = None if number is None else str(number)
    try:
        return _reply(await submit(project, run, which, answer), None, 1)
    except InvalidAnswer as error:
        # Nothing has changed, and what is open tells the agent what to do instead.
        open_work = _reply(run_status(project, run), None, 1, is_shown=False)
        return {**open_work, "done": False, "message": line(str(error), LONGEST_PROBLEM)}


def _reply(
    status: RunStatus, number: int | None, page: int, *, is_shown: bool = True
) -> dict[str, Any]:
    row, verdict = status.row, status.verdict
    items = [each for each in status.work if number in (None, each.number)]
    found: dict[str, Any] = {"run": row.name, "status": row.status.value}
    if verdict is not None:
        problem = line(verdict.problem, LONGEST_PROBLEM)
        found |= {"done": verdict.accepted, "message": problem}
    elif items and is_shown:
        found |= page_of(items[0].prompt, page, PROMPT_CHARACTERS)
    found["work"] = [_item(each) for each in items[:MOST_ITEMS]]
    found["waits_for"] = [int(each["number"]) for each in status.people[:MOST_ITEMS]]
    return without_empty(found)


def _item(item: WorkItem) -> dict[str, Any]:
    return without_empty(
        {
            "item": item.number,
            "step": line(item.step, LONGEST_LABEL),
            "attempt": item.attempt,
            "feedback": line(item.feedback or "", LONGEST_PROBLEM),
            "schema": dict(item.schema) if item.schema else None,
            "must_hold": [line(each, LONGEST_TEXT) for each in item.must_hold],
        }
    )
