"""Answers of agents, which may answer only what a workflow opens to them."""

from __future__ import annotations

from dataclasses import replace

from signoff.app.answering import AnswerInput, record_answer
from signoff.app.project import Project
from signoff.errors import InvalidAnswer
from signoff.runtime.store_port import InboxItem


def answer_as_agent(project: Project, number: int, answer: AnswerInput) -> InboxItem:
    """Records an agent's answer to a question or a choice that is open to agents.

    Anything else is refused: approvals, requests that are for humans, and work.
    """
    if answer.digest is None:
        raise InvalidAnswer("give the digest of the request as it was shown")
    return record_answer(replace(project, for_agent=True), number, answer)
