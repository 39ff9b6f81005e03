"""Lists what runs ask of people."""

from __future__ import annotations

from typing import Any

from signoff.app.answering import form_of
from signoff.app.project import Project
from signoff.core.digest import SHORT
from signoff.runtime.ports import InboxItem


def open_requests(project: Project, run: str | None = None) -> list[InboxItem]:
    """Returns what waits for an answer, oldest first; of one run, or of all."""
    if run is not None:
        run = project.run(run).name
    return project.store.items(run)


def request_to_json(project: Project, item: InboxItem) -> dict[str, Any]:
    """Returns a request as plain values, with the command that answers it."""
    form = form_of(project, item)
    return {
        "number": item.id,
        "run": item.run,
        "step": item.step,
        "kind": item.kind,
        "prompt": item.prompt,
        "options": options_of(form),
        "shown": form.get("shown") or {},
        "path": form.get("path"),
        "schema": form.get("schema"),
        "question_id": form.get("question_id"),
        "digest": item.digest,
        "opened_at": item.opened_at,
        "deadline": item.deadline,
        "default": form.get("default"),
        "state": item.state,
        "command": answer_command(item, form),
    }


def options_of(form: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns what can be chosen; empty when anything can be said."""
    listed = form.get("options") or []
    return [o if isinstance(o, dict) else {"label": str(o)} for o in listed]


def answer_command(item: InboxItem, form: dict[str, Any]) -> str:
    """Returns the exact command that answers a request and lets its run go on."""
    match item.kind:
        case "approval":
            return f"signoff approve {item.id} --digest {item.digest[:SHORT]} --resume"
        case "choice":
            options = options_of(form)
            labels = "|".join(_quoted(str(o["label"])) for o in options)
            text = " --text WHY" if any(o.get("requires_input") for o in options) else ""
            return f"signoff answer {item.id} {labels}{text} --resume"
        case "response":
            return f"signoff answer {item.id} --file REPLY.md --resume"
        case _:
            return f'signoff answer {item.id} "..." --resume'


def _quoted(label: str) -> str:
    plain = label.replace("-", "").replace("_", "").isalnum()
    return label if plain else "'" + label.replace("'", "'\\''") + "'"
