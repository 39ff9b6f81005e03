"""A story in which critics read only what changed, and severe findings are confirmed.

The first round has a finding, a false alarm that another agent does not confirm, and a finding
that the judge dismisses. The fix breaks another rule, which is noticed in the last reading before
the approval: a human decides about it, and the judge pursues it. The rules of `short` are too long
to be read along with others before; `kind` is read along.
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

NAME = "incremental"
FLOW = """
max_iterations: 4
rereview: changed
verify: {agent: codex, min_severity: HIGH}
default_behavior: {critical: escalate}
constraints: {dir: constraints, routing: {default_agents: [claude]}}
workflow:
  - {step: generate}
  - {step: critique, name: review}
  - {step: adjudicate, name: judge}
  - {step: refine, name: fix, loop_to: review}
"""
DRAFT, SECOND, FINAL = "The see ends.\n", "The sea is very wide.\n", "The sea is wide.\n"
AGENTS = ["claude", "codex"]


async def story(store: Store, log: EffectLog) -> None:
    """Starts or resumes the run, and answers its request until it has ended."""
    root = log.path.parent
    workflow = _workflow(root)
    agents = {name: log.watch(ScriptedAgent().on("", _answer)) for name in AGENTS}
    async with Engine(store, agents=agents, files=RunFiles(root / "runs")) as engine:
        try:
            store.row(NAME)
        except UnknownName:
            result = await engine.start(workflow, name=NAME)
        else:
            result = await engine.resume(NAME, workflow)
        while result.status is Status.WAITING:
            (item,) = result.inbox
            answer = json.dumps({"value": "It is too long.", "text": ""})
            store.answer(item.id, answer, "ann", 0.0, item.digest)
            result = await engine.resume(NAME, workflow)
    assert result.status is Status.COMPLETED, result
    assert (root / f"runs/{NAME}/final/artifact.md").read_text() == FINAL


def _workflow(root: Path) -> Workflow:
    context = CompileContext(_project(root), options={"goal": "goal.yaml"}, installed=AGENTS)
    return compile_file(SourceFile(root / "flow.yaml"), context)


def _project(root: Path) -> Path:
    """Writes the project of the flow; every process does, which changes nothing."""
    folder = root / "constraints"
    folder.mkdir(parents=True, exist_ok=True)
    (root / "goal.yaml").write_text("goal: Write about the sea.\n")
    (root / "flow.yaml").write_text(FLOW)
    for priority, name in enumerate(["clear", "short", "exact", "kind"], start=1):
        more = " Use few words." * 300 if name == "short" else ""
        rule = f"rules: [{{id: {name}-rule, text: 'Be good at {name}.{more}'}}]\n"
        text = f"id: {name}\npriority: {priority}\nsummary: Mind {name}.\n{rule}"
        (folder / f"{name}.yaml").write_text(text)
    return root


def _answer(request: AgentRequest) -> str | Reply:
    prompt = request.prompt
    if request.edit:
        assert request.workspace is not None
        file = Path(request.workspace) / "artifact.md"
        file.write_text(SECOND if file.read_text() == DRAFT else FINAL)
        return Reply("done")
    if "Write the artifact" in prompt:
        return DRAFT
    if "A critic reported" in prompt:
        answer = {"reason": "This is what I found in it.", "confirmed": "false alarm" not in prompt}
        return json.dumps(answer)
    return _verdict(prompt) if "You are the judge" in prompt else _review(prompt)


def _verdict(prompt: str) -> str:
    found = DRAFT in prompt or (SECOND in prompt and "short-1" in prompt)
    status = "REWRITE" if found else "APPROVED"
    dismissal = {"issue_id": "exact-1", "status": "dismissed", "rationale": "It is true."}
    decisions = json.dumps({"status": status, "decisions": [dismissal] if DRAFT in prompt else []})
    return f"=== ADJUDICATION ===\n{decisions}\n=== BILL_OF_WORK ===\nFix it.\n"


def _review(prompt: str) -> str:
    issues = []
    if DRAFT in prompt and "Be good at clear." in prompt:
        issues += [_issue("clear", 1, "HIGH", "The see"), _issue("clear", 2, "HIGH", "ends")]
    if DRAFT in prompt and "Be good at exact." in prompt:
        issues += [_issue("exact", 1, "MEDIUM", "ends")]
    if SECOND in prompt and "Be good at short." in prompt:
        issues += [_issue("short", 1, "CRITICAL", "very wide")]
    return json.dumps(
        {"overall": "FAIL" if issues else "PASS", "issues": issues, "summary": "I read every line."}
    )


def _issue(constraint: str, number: int, severity: str, evidence: str) -> dict[str, str]:
    finding = "It is a false alarm." if (constraint, number) == ("clear", 2) else "It is wrong."
    return {
        "id": f"{constraint}-{number}",
        "rule_id": f"{constraint}-rule",
        "severity": severity,
        "finding": finding,
        "evidence": evidence,
    }


# Its files are parsed here, once, and not in each of the processes that the crash harness forks.
with TemporaryDirectory() as _folder:
    _workflow(Path(_folder))
