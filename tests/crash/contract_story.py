"""A story that runs the book editing example until the book is published.

Nothing is kept in memory: the agents' replies depend only on their prompts.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from signoff.core.effects import AgentRequest
from signoff.core.errors import UnknownName
from signoff.core.outcome import Status
from signoff.documents import bounded
from signoff.documents.python_files import import_file, make_importable
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import InboxItem, Store
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "w1"
BOOK = "book.db"
ROLES = ("strategist", "writer", "editor", "domain_expert")
EXAMPLE = Path(__file__).parents[2] / "examples/book_editing"

KEEPER = "Each day the keeper oiled the lamp."
BAD, GOOD = "A storm came. It was bad.", "The wind tore at the roof. He ran up."
FINAL = [
    (1, KEEPER),
    (2, GOOD),
    (3, "The sea was calm. The light still burned. He put it out and slept.\n"),
]
"""The chapters as they are published."""

make_importable([EXAMPLE])
# Imported here, once, and not in each of the processes that the crash harness forks.
SAMPLE = import_file(EXAMPLE / "sample.py")
EDITING = import_file(EXAMPLE / "workflow.py")
with TemporaryDirectory() as _folder:
    SAMPLE.make_sample(Path(_folder) / BOOK)
    EDITING.editing_workflow(Path(_folder) / BOOK)
bounded._CHILD.close()


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run, and answers its requests until it has ended."""
    database = log.directory / BOOK
    if not database.exists():
        SAMPLE.make_sample(database)
    workflow = EDITING.editing_workflow(database)
    agents = {role: log.watch(ScriptedAgent().on("", _answer)) for role in ROLES}
    async with Engine(store, agents=agents) as engine:
        try:
            store.row(NAME)
        except UnknownName:
            result = await engine.start(workflow, name=NAME)
        else:
            result = await engine.resume(NAME, workflow)
        while result.status is Status.WAITING:
            for item in result.inbox:
                _approve(store, item)
            result = await engine.resume(NAME, workflow)
    assert result.status is Status.COMPLETED, result


def _answer(request: AgentRequest) -> str:
    return json.dumps(_reply(request.prompt))


def _reply(prompt: str) -> dict[str, Any]:
    if prompt.startswith("Plan"):
        areas = [{"id": f"c{n}", "chapter": n, "instruction": "Better."} for n in (1, 2)]
        return {"goal": "Plain words.", "areas": areas}
    if prompt.startswith("Judge"):
        return {"decision": "changes" if BAD in prompt else "approved", "notes": "Show it."}
    if "chapter 1" in prompt:
        return {"text": KEEPER}
    return {"text": GOOD if "Show it." in prompt else BAD}


def _approve(store: Store, item: InboxItem) -> None:
    answer = json.dumps({"value": "Approve and finalize", "text": ""})
    store.answer(item.id, answer, "ann", 0.0, item.digest)
