import json
import re
from pathlib import Path

import pytest

from signoff.skills.library.planner import TEXTS, WORKFLOW

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
