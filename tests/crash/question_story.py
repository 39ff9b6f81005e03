"""A story of questions: three sub-agents ask at once, are answered, and finish their work."""

from __future__ import annotations

import json
from typing import Any

from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import Dispatch
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import InboxItem, Store
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "one"
FILES = ["a.py", "b.py", "c.py"]
EXPECTED = {
    "files": FILES,
    "check": [{"status": "pass", "notes": f"{name} with SQLite"} for name in FILES],
}
QUESTION = """<needs_user_input><question header="Storage" multi_select="false">
<text>Where does {name} keep its records?</text>
<option label="SQLite">One file.</option><option label="Postgres">A server.</option>
</question></needs_user_input>"""


def collect(_ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    """Finds what there is to check."""
    return Outcome.OK, {"files": FILES}


WORKFLOW = Workflow(
    "questions",
    StepDef("collect", handler=collect, next={Outcome.OK: "check"}),
    StepDef(
        "check",
        "Check",
        ["Judge it."],
        Dispatch("claude", supports_questions=True, for_each="files"),
        {Outcome.OK: None, Outcome.FAIL: None},
    ),
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run, and answers whatever is asked."""
    agents = {"claude": log.watch(ScriptedAgent().on("", _answer))}
    async with Engine(store, agents=agents) as engine:
        if not store.rows():
            await engine.start(WORKFLOW, name=NAME)
        result = await engine.resume(NAME, WORKFLOW)
        while result.status is Status.WAITING:
            for item in store.items(NAME):
                _reply(store, item)
            result = await engine.resume(NAME, WORKFLOW)


def _reply(store: Store, item: InboxItem) -> None:
    answer = json.dumps({"value": {"Storage": "SQLite"}, "text": ""})
    store.answer(item.id, answer, "ann", item.opened_at, item.digest)


def _answer(request: AgentRequest) -> str:
    """Answers by the prompt alone: a fresh process does not know what was asked before."""
    (name,) = (each for each in FILES if f'"{each}"' in request.prompt)
    if '<choice label="SQLite">' in request.prompt:
        return json.dumps({"status": "pass", "notes": f"{name} with SQLite"})
    return QUESTION.format(name=name)
