"""A story about files: found, fixed, signed off after a change request, and written back.

Every part of a review of files that can be lost is in it: the copy of the files, critics of
several files, a finding that a comment dismisses and one that the committed file of decisions does,
fixes by exact edits and by an agent, two answers of a human, and the files that are put back into
the project.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from signoff.core.effects import AgentRequest, Reply
from signoff.core.outcome import Status
from signoff.core.workflow import Workflow
from signoff.documents.source_file import SourceFile
from signoff.errors import UnknownName
from signoff.flows.compile_file import compile_file
from signoff.notation import CompileContext
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.store.rundir.files import RunFiles
from signoff.testing import EffectLog, ScriptedAgent
from tests import preload  # noqa: F401

NAME = "review"
FLOW = """
max_iterations: 4
artifact: {path: docs}
rereview: changed
constraints: {dir: constraints}
output: {write_back: on_approval}
workflow:
  - {step: critique, name: review}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: refine, name: fix, mode: apply, loop_to: review}
  - {step: sign_off}
"""
FILES = {
    "a.md": "It always works.\n",
    "b.md": "It never fails.\n",
    "c.md": "<!-- signoff: ignore sure A slogan. -->\nIt is fine.\n",
    "d.md": "It cannot break.\n",
}
FINAL = {
    "a.md": "It usually works.\n",
    "b.md": "It may fail.\n",
    "c.md": "Fine.\n",
    "d.md": "It cannot break.\n",
}
QUOTES = {
    "a.md": "It always works.",
    "b.md": "It never fails.",
    "c.md": "It is fine.",
    "d.md": "It cannot break.",
}
DECISIONS = """
version: 1
decisions:
  - {finding: 0123456789ab, constraint: tone, rule: sure, severity: HIGH, path: docs/d.md,
     quote: It cannot break., about: Too sure., why: It is a rock.}
"""
ANSWERS = [("request changes", "Make docs/c.md shorter."), ("approve", "")]
EDIT = {"kind": "replace", "find": "always", "text": "usually"}


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run, and answers its requests until it has ended."""
    root = log.path.parent
    workflow = _workflow(root)
    agents = {"claude": log.watch(ScriptedAgent().on("", _answer))}
    async with Engine(store, agents=agents, files=RunFiles(root / "runs")) as engine:
        try:
            store.row(NAME)
        except UnknownName:
            result = await engine.start(workflow, name=NAME)
        else:
            result = await engine.resume(NAME, workflow)
        while result.status is Status.WAITING:
            (item,) = result.inbox
            value, text = ANSWERS["Fine." in item.form]
            assert "ignored in the file: A slogan." in item.form
            assert "It is a rock." in item.form
            store.answer(
                item.id, json.dumps({"value": value, "text": text}), "ann", 0.0, item.digest
            )
            result = await engine.resume(NAME, workflow)
    assert result.status is Status.COMPLETED, result
    assert {name: (root / "docs" / name).read_text() for name in FILES} == FINAL


def _workflow(root: Path) -> Workflow:
    context = CompileContext(_project(root), root / "home", installed=["claude"])
    return compile_file(SourceFile(root / "flow.yaml"), context)


def _project(root: Path) -> Path:
    """Writes what is not there yet: files that a killed process has written back stay."""
    (root / "constraints").mkdir(parents=True, exist_ok=True)
    (root / "constraints/tone.yaml").write_text("rules: [{id: sure, text: Promise little.}]\n")
    (root / "flow.yaml").write_text(FLOW)
    (root / "home").mkdir(exist_ok=True)
    (root / "home/decisions.yaml").write_text(DECISIONS)
    (root / "docs").mkdir(exist_ok=True)
    for name, text in FILES.items():
        if not (root / "docs" / name).exists():
            (root / "docs" / name).write_text(text)
    return root


def _answer(request: AgentRequest) -> str | Reply:
    prompt = request.prompt
    if request.workspace:
        (file,) = Path(request.workspace).iterdir()
        file.write_text(FINAL[file.name])
        return "done"
    issues = [
        {"path": f"docs/{name}", "evidence": quote, "finding": "Too sure.", "rule_id": "sure"}
        | {"severity": "HIGH"}
        | ({"edit": EDIT} if name == "a.md" else {})
        for name, quote in QUOTES.items()
        if f"\n{quote}\n" in prompt  # Not among what is known from earlier rounds.
    ]
    return json.dumps({"overall": "FAIL" if issues else "PASS", "issues": issues})


# Its files are parsed here, once, and not in each of the processes that the crash harness forks.
with TemporaryDirectory() as _folder:
    _workflow(Path(_folder))
