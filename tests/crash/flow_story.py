"""A story that runs the longest flow of the documentation until it is approved."""

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

NAME = "full"
FLOW = Path(__file__).parents[1] / "fixtures/flows/full.yaml"
CONSTRAINTS = {"structure": 1, "completeness": 2, "style": 3, "tone": 4, "security": 5}
DRAFT, FINAL = "The see.\n", "The sea.\n"

RULING = """=== ADJUDICATION ===
{"status": "REWRITE", "decisions": [{"issue_id": "structure-001", "status": "pursuing"}]}
=== BILL_OF_WORK ===
Fix the spelling.
"""
APPROVAL = '=== ADJUDICATION ===\n{"status": "APPROVED", "decisions": []}\n=== BILL_OF_WORK ===\n'


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run, and answers its requests until it has ended."""
    root = log.path.parent
    workflow = _workflow(root)
    agents = {name: log.watch(ScriptedAgent().on("", _answer)) for name in _AGENTS}
    async with Engine(store, agents=agents, files=RunFiles(root / "runs")) as engine:
        try:
            store.row(NAME)
        except UnknownName:
            result = await engine.start(workflow, name=NAME)
        else:
            result = await engine.resume(NAME, workflow)
        while result.status is Status.WAITING:
            for item in result.inbox:
                answer = json.dumps({"value": "fix it", "text": ""})
                store.answer(item.id, answer, "ann", 0.0, item.digest)
            result = await engine.resume(NAME, workflow)
    assert result.status is Status.COMPLETED, result
    assert (root / f"runs/{NAME}/final/artifact.md").read_text() == FINAL


_AGENTS = ["claude", "codex", "gemini"]


def _workflow(root: Path) -> Workflow:
    context = CompileContext(_project(root), options={"goal": "goal.yaml"}, installed=_AGENTS)
    return compile_file(SourceFile(FLOW), context)


def _project(root: Path) -> Path:
    """Writes the project of the flow; every process does, which changes nothing."""
    folder = root / ".arena/constraints"
    folder.mkdir(parents=True, exist_ok=True)
    (root / "goal.yaml").write_text("goal: Write about the sea.\n")
    for name, priority in CONSTRAINTS.items():
        behavior = "behavior: {critical: escalate}\n" if name == "tone" else ""
        rule = f"rules: [{{id: r, text: 'Be good at {name}.'}}]\n"
        text = f"id: {name}\npriority: {priority}\nsummary: Mind {name}.\n{rule}{behavior}"
        (folder / f"{name}.yaml").write_text(text)
    return root


def _answer(request: AgentRequest) -> str | Reply:
    prompt = request.prompt
    if request.edit:
        assert request.workspace is not None
        file = Path(request.workspace) / "artifact.md"
        assert file.read_text() == DRAFT
        file.write_text(FINAL)
        return Reply("done")
    if "Write the artifact" in prompt:
        return DRAFT
    if "You are the judge" in prompt:
        return RULING if DRAFT in prompt else APPROVAL
    return _review(prompt)


def _review(prompt: str) -> str:
    issues = []
    if DRAFT in prompt and "against structure now" in prompt:
        issues = [_issue("structure-001", "HIGH", "The see")]
    elif DRAFT in prompt and "against tone now" in prompt:
        issues = [_issue("tone-001", "CRITICAL", "OMISSION")]
    return json.dumps({"overall": "FAIL" if issues else "PASS", "issues": issues})


def _issue(name: str, severity: str, evidence: str) -> dict[str, str]:
    return {"id": name, "severity": severity, "finding": "It is wrong.", "evidence": evidence}


# Its files are parsed here, once, and not in each of the processes that the crash harness forks.
with TemporaryDirectory() as _folder:
    _workflow(Path(_folder))
