"""Lists the requests of runs to humans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from signoff.app.answering import form_of, request_number, title_of
from signoff.app.next_commands import answer_commands
from signoff.app.project import Project
from signoff.core.codec import decode
from signoff.core.requests import PRESENCE, AnswerForm, describe_default, options_of
from signoff.errors import UnknownName, UsageError
from signoff.remedies import AnswerRequest
from signoff.runtime.store_port import InboxItem, InboxLine
from signoff.store.rundir.answers import prompt_name
from signoff.store.rundir.files import HITL, file_path


def open_requests(project: Project, run: str | None = None) -> list[InboxLine]:
    """Returns the pending requests of one run or of all, oldest first.

    Their forms, which can be long, are not read; `request_to_json` reads the one it needs.
    """
    name = project.run(run).name if run is not None else None
    return [line for line in project.store.waiting() if name in (None, line.run)]


def request_line(project: Project, line: InboxLine) -> dict[str, Any]:
    """Returns a request as a list shows it, with its title; what it shows is not read."""
    form = decode(project.store.item(line.id).form, lambda digest: digest)
    return {**line._asdict(), "number": line.id, "title": title_of(form),
            "question_id": form.get("question_id")}  # fmt: skip


def refuse_reference_as_answer(project: Project, word: str) -> None:
    """Raises `UsageError` if a text given as the answer names a request or a run.

    The user has most likely forgotten the answer itself, and an answer cannot be undone.
    """
    if _is_request(project, word) or project.has_run(word):
        raise UsageError(
            f"the answer is missing: {word!r} is a request or a run (if it is the answer itself, "
            "give the request or the run too)",
            remedy=AnswerRequest(word.removeprefix("#")),
        )


def request_to_json(project: Project, item: InboxItem) -> dict[str, Any]:
    """Returns a request as plain values, with the commands that answer it."""
    form = form_of(project, item)
    return {
        "number": item.id,
        "run": item.run,
        "step": item.step,
        "kind": item.kind,
        "title": title_of(form),
        "prompt": item.prompt,
        "prompt_file": _prompt_file(project, item),
        "options": options_of(form),
        "questions": form.get("questions") or [],
        "shown": form.get("shown") or {},
        "path": form.get("path"),
        "file": _file(project, item, form),
        "edits": form.get("edits"),
        "schema": form.get("schema"),
        "question_id": form.get("question_id"),
        "digest": item.digest,
        "presence": bool(form.get(PRESENCE)),
        "opened_at": item.opened_at,
        "deadline": item.deadline,
        "default": form.get("default"),
        "at_deadline": describe_default(form) if item.deadline is not None else None,
        "state": item.state,
        "answer": answer_to_json(item),
        "commands": answer_commands(item, form, project.clock.now()),
    }


def answer_to_json(item: InboxItem) -> dict[str, Any] | None:
    """Returns the answer, its author and its time; None if there is none yet."""
    if item.answer is None:
        return None
    answer = json.loads(item.answer)
    return {
        "value": answer.get("value"),
        "text": answer.get("text") or "",
        "by": item.answered_by,
        "at": item.answered_at,
        **{
            name: answer[name]
            for name in ("content_digest", "extras", "presence")
            if name in answer
        },
    }


def _prompt_file(project: Project, item: InboxItem) -> str | None:
    """Returns the file in the run's folder with the full prompt of a request for a response."""
    if item.kind.answer_form is not AnswerForm.WORK:
        return None
    path = project.folder(item.run) / HITL / prompt_name(item.id)
    return str(path) if path.is_file() else None


def _file(project: Project, item: InboxItem, form: Mapping[str, Any]) -> str | None:
    """Returns the full path of the file that an approval is about."""
    path = form.get("path")
    return str(file_path(project.folder(item.run), path)) if path else None


def _is_request(project: Project, word: str) -> bool:
    number = request_number(word)
    try:
        return number is not None and bool(project.store.item(number))
    except UnknownName:
        return False
