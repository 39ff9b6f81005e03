"""The files in `hitl/` that show a run's open requests to humans."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from signoff.core.codec import decode
from signoff.core.requests import AnswerForm, options_of
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.documents import json_bytes, timestamp

QUESTIONS = "questions.json"
_QUESTION_FILE = re.compile(r"questions\.json|[0-9]+-prompt\.md")
PLACEHOLDER = "<your answer>"
"""The answer in the example; copied unchanged, it counts as no answer."""


def question_files(
    items: Sequence[InboxItem], forms: Mapping[int, Mapping[str, Any]], iteration: int
) -> dict[str, bytes]:
    """Returns the files that show open requests, by name; empty without requests."""
    if not items:
        return {}
    files = {QUESTIONS: json_bytes(_document(items, forms, iteration))}
    for item in items:
        if item.kind.answer_form is AnswerForm.WORK:
            files[prompt_name(item.id)] = _prompt_bytes(item, forms[item.id])
    return files


def find_question_files(hitl: Path) -> set[str]:
    """Returns the names of the question files in a run's `hitl/`."""
    names = (path.name for path in hitl.iterdir()) if hitl.is_dir() else ()
    return {name for name in names if _QUESTION_FILE.fullmatch(name)}


def decode_form(item: InboxItem, blob: Callable[[str], str]) -> dict[str, Any]:
    """Returns the complete request of an inbox item."""
    form = decode(item.form, blob)
    return form if isinstance(form, dict) else {}


def prompt_name(number: int) -> str:
    """Returns the name of the file with a request's prompt."""
    return f"{number}-prompt.md"


def response_name(number: int) -> str:
    """Returns the name of the file in which a request may be answered."""
    return f"{number}-response.md"


def _document(
    items: Sequence[InboxItem], forms: Mapping[int, Mapping[str, Any]], iteration: int
) -> dict[str, Any]:
    by_step: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        by_step.setdefault(item.step, []).append(_question(item, forms[item.id]))
    answers = [_example(question) for questions in by_step.values() for question in questions]
    return {
        "timestamp": timestamp(max(item.opened_at for item in items)),
        "turn": iteration,
        "questions": [{"agent": step, "questions": qs} for step, qs in by_step.items()],
        "answer_format": {"answers": answers},
    }


def _question(item: InboxItem, form: Mapping[str, Any]) -> dict[str, Any]:
    name = str(form.get("question_id") or "")
    # An approval counts only for exactly what was shown, and only the number identifies that.
    is_decision = item.kind.answer_form is AnswerForm.DECISION
    use_name = name and not is_decision
    question: dict[str, Any] = {
        "id": name if use_name else str(item.id),
        "question": item.prompt,
        "priority": "critical" if is_decision else "high",
        "required": item.deadline is None,
        "number": item.id,
        "kind": item.kind,
        "digest": item.digest,
    }
    title = (form.get("about") or {}).get("title")
    if title:
        question["title"] = title
    options = options_of(form)
    if options:
        question["options"] = [str(option["label"]) for option in options]
        described = {str(o["label"]): o["description"] for o in options if o.get("description")}
        question |= {"descriptions": described} if described else {}
    if form.get("questions"):
        question["questions"] = form["questions"]
    if item.deadline is not None:
        question["deadline"] = timestamp(item.deadline)
        question["default"] = form.get("default")
    if item.kind.answer_form is AnswerForm.WORK:
        question["prompt_file"] = prompt_name(item.id)
        question["response_file"] = response_name(item.id)
    if form.get("shown"):
        question["shown"] = form["shown"]
    if form.get("edits"):
        question |= {"path": form["path"], "edits": form["edits"]}
    return question


def _example(question: Mapping[str, Any]) -> dict[str, Any]:
    parts = question.get("questions", ())
    answer = {each["header"]: PLACEHOLDER for each in parts} if parts else PLACEHOLDER
    example = {"question_id": question["id"], "answer": answer}
    if question["kind"].answer_form is AnswerForm.DECISION:
        # An approval by file counts only with the digest of what it approves.
        example["digest"] = question["digest"]
    return example


def _prompt_bytes(item: InboxItem, form: Mapping[str, Any]) -> bytes:
    text = item.prompt
    if form.get("schema"):
        schema = json.dumps(form["schema"], ensure_ascii=False, indent=2)
        text = f"{text}\n\nAnswer with JSON that fits this schema:\n\n```json\n{schema}\n```\n"
    return text.encode("utf-8", "backslashreplace")
