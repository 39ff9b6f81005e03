import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from signoff.core.outcome import Status
from signoff.skills.library.planner import TEXTS, WORKFLOW
from signoff.skills.qr import ItemStatus, record
from tests.unit.skills.library.skill_runs import PASS, run_skill

CONTEXT, PLAN = "context.json", "plan.json"


def test_the_state_directory_starts_with_an_empty_plan_and_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents fill in the fields that reviewers will look for."""
    (tmp_path / ".signoff").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)

    assert WORKFLOW.prepare is not None
    folder = Path(WORKFLOW.prepare({})["state_dir"])

    assert folder.is_relative_to(tmp_path)
    assert {path.name for path in folder.iterdir()} == {CONTEXT, PLAN}
    assert json.loads((folder / PLAN).read_text())["milestones"] == []


def test_every_field_of_the_context_and_the_plan_is_explained() -> None:
    """An agent would leave out a field that no step mentions."""
    text = "\n".join(step.instructions for step in WORKFLOW.steps.values())
    context, plan = (json.loads(TEXTS.files[name]) for name in (CONTEXT, PLAN))
    nested = [plan["planning_context"], plan["invisible_knowledge"]]
    fields = [*context, *plan, *(name for part in nested for name in part)]

    assert [name for name in fields if not re.search(rf"[`.]{name}[`.]", text)] == []


async def test_in_a_run_a_part_that_fails_its_review_is_fixed_and_reviewed_again(
    tmp_path: Path,
) -> None:
    """The agent that fixes the plan is shown what the reviewer recorded."""
    passing = [(ItemStatus.PASS, "")]
    replies = {
        "review_design": reviewer(tmp_path / "qr-plan-design.json", passing),
        "review_code": reviewer(
            tmp_path / "qr-plan-code.json", [(ItemStatus.FAIL, "no line 80 in a.py"), *passing]
        ),
        "review_docs": reviewer(tmp_path / "qr-plan-docs.json", passing),
    }

    run = await run_skill(WORKFLOW, replies, state_dir=str(tmp_path))

    assert run.result.status is Status.COMPLETED
    position = run.steps.index("fix_code")
    assert "no line 80 in a.py" in run.prompts[position]
    assert run.steps[position - 1 : position + 3] == [
        "review_code",
        "fix_code",
        "review_code",
        "documents",
    ]
    assert {"fix_design", "fix_docs"}.isdisjoint(run.steps)


def reviewer(path: Path, results: Sequence[tuple[ItemStatus, str]]) -> list[Callable[[Any], Any]]:
    """Returns answers of a reviewer that writes one item down and records results for it."""
    item = {"id": "places", "check": "each place exists", "severity": "MUST", "status": "TODO"}

    def split(_request: Any) -> Any:
        path.write_text(json.dumps({"iteration": 1, "items": [item]}))
        return PASS

    def verify(status: ItemStatus, finding: str) -> Callable[[Any], Any]:
        def answer(_request: Any) -> Any:
            record(path, "places", status, finding)
            return {"status": status.lower(), "notes": finding}

        return answer

    return [split, *(verify(*result) for result in results)]
