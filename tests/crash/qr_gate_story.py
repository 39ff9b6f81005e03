"""A story of a quality review: split into items, failed, redone, put to a human, and passed."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

from signoff.core.effects import AgentRequest
from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.skills.qr import QRGate, qr_file, read_record, record
from signoff.skills.state import STATE_DIR
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME, PHASE = "one", "impl-code"
STATE = "state"
"""The state directory, in the folder of the story."""
ASKED = "asked"
"""A file in it that exists once a human was asked: only then is the second item recorded."""
ITEMS = [{"id": "a", "severity": "MUST"}, {"id": "b", "severity": "MUST"}]
PASSED, FAILED = ({"status": status, "notes": ""} for status in ("pass", "fail"))

WORKFLOW = Workflow(
    "gated",
    StepDef(
        "gate",
        "Review",
        ["Review it."],
        QRGate(phase=PHASE, agent="claude"),
        {Outcome.OK: None, Outcome.FAIL: "fix"},
    ),
    StepDef("fix", next={Outcome.OK: "gate"}),
    inputs=[STATE_DIR],
)


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run; a human has the item without a result verified again."""
    folder = log.directory / STATE
    folder.mkdir(exist_ok=True)
    agents = {"claude": log.watch(ScriptedAgent().on("", partial(_answer, qr_file(folder, PHASE))))}
    async with Engine(store, agents=agents) as engine:
        if not store.rows():
            await engine.start(WORKFLOW, {"state_dir": str(folder)}, name=NAME)
        result = await engine.resume(NAME, WORKFLOW)
        while result.status is Status.WAITING:
            for item in store.items(NAME):
                (folder / ASKED).touch()
                answer = json.dumps({"value": "verify", "text": ""})
                store.answer(item.id, answer, "ann", item.opened_at, item.digest)
            result = await engine.resume(NAME, WORKFLOW)


def _answer(path: Path, request: AgentRequest) -> dict[str, str]:
    """Answers by the prompt and the files alone, as a fresh process does."""
    if "--items" in request.prompt:
        path.write_text(json.dumps({"items": ITEMS}))
        return PASSED
    (group,) = re.findall(r"--group (\w)", request.prompt)
    if group == "a" and read_record(path).iteration == 1:
        record(path, "a", "FAIL", "no retry")
        return FAILED
    if group == "a" or path.with_name(ASKED).exists():
        record(path, group, "PASS")
    return PASSED
