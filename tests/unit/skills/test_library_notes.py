"""Skills whose steps share notes: what the instructions name is there from the first step on."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from signoff.core.step import HandlerObject
from signoff.core.workflow import Workflow
from signoff.skills import library
from signoff.skills.library.incident_review import TEXTS

NOTES_IN_REPLY = TEXTS.texts["incident"].paragraphs[-1]
MODULES = [
    importlib.import_module(f"signoff.skills.library.{module.name}")
    for module in pkgutil.iter_modules(library.__path__)
]
WITH_NOTES: list[Workflow] = [
    module.WORKFLOW
    for module in MODULES
    if any(NOTES_IN_REPLY in step.actions for step in module.WORKFLOW.steps.values())
]

every_skill = pytest.mark.parametrize("skill", WITH_NOTES, ids=lambda skill: skill.name)

FILE = re.compile(r"`([a-z]+\.md)`")
SECTION = re.compile(r'"([A-Z][a-z ]+)"')
USES_OF_NOTES = re.compile(r'^(?:Read "|Write into ).*(?:\n.+)*', re.MULTILINE)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIGNOFF_HOME", str(tmp_path))
    return tmp_path


@every_skill
def test_instructions_name_only_files_and_sections_that_exist(skill: Workflow, home: Path) -> None:
    """An agent that looks for notes under another name takes them for missing."""
    assert skill.prepare is not None
    folder = Path(skill.prepare({})["state_dir"])
    files = {path.name: path.read_text() for path in folder.iterdir()}
    headings = {
        line[3:] for text in files.values() for line in text.splitlines() if line[:3] == "## "
    }
    text = "\n\n".join(action for step in skill.steps.values() for action in step.actions)

    assert home in folder.parents
    assert set(FILE.findall(text)) == set(files)
    named = {name for use in USES_OF_NOTES.findall(text) for name in SECTION.findall(use)}
    assert named - headings == set()
    assert len(named) >= 2


@every_skill
def test_every_step_says_what_to_do_without_files(skill: Workflow) -> None:
    """The agent of a run may be allowed only to read, and its notes must not be lost."""
    own = [s for s in skill.steps.values() if not isinstance(s.handler, HandlerObject)]

    assert [step.id for step in own if NOTES_IN_REPLY not in step.actions] == []
