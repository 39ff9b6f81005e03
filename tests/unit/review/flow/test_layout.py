"""Tests of a flow's run directory: the names and fields its users know."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from signoff.core import events as ev
from signoff.core.outcome import Outcome, Status
from signoff.review.flow.layout import FlowLayout
from signoff.views.run_directory.directory import RunDirectory
from tests.unit.views.run_directory.story import Story

STEPS = {
    "draft": "generate",
    "structure_review": "critique",
    "style_review": "critique",
    "judge": "adjudicate",
    "fix": "refine",
    "polish": "refine",
}
SOURCE = {
    "goal": {"goal": "Write about tea.\nBe short.\n", "source": {"files": ["notes.md"]}},
    "constraints": [
        {"id": "style", "priority": 5, "summary": "Short.", "rules": [{"id": "r", "text": "t"}]},
        {"id": "accuracy", "priority": 1, "summary": "True."},
    ],
}
CRITIQUE = {
    "constraint_id": "accuracy",
    "reviewer": "claude",
    "round": 1,
    "overall": "FAIL",
    "issues": [{"id": "accuracy-001", "severity": "HIGH"}],
    "approved_sections": [],
    "summary": "Not yet.",
    "step": "structure_review",
}
JUDGED = {
    "round": 1,
    "status": "REWRITE",
    "decisions": [],
    "termination": {"critical_pursuing": 0, "high_pursuing": 2},
    "bill_of_work": "## Issue: accuracy-001 (HIGH)\n\n- fix it\n",
}


@pytest.fixture
def story() -> Story:
    return Story(notation="flows", steps=STEPS, source=SOURCE)


class Shelf:
    """A run directory to look at."""

    def __init__(self, root: Path, story: Story) -> None:
        self.folder = root / "demo"
        self._directory = RunDirectory(root, story.store, layout_of=lambda _notation: FlowLayout())

    def look(self) -> "Shelf":
        self._directory.catch_up("demo")
        return self

    @property
    def names(self) -> set[str]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix() for path in files}

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def yaml(self, name: str) -> Any:
        return YAML(typ="safe", pure=True).load(self.folder / name)

    @property
    def thread(self) -> list[dict[str, Any]]:
        lines = (self.folder / "thread.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def finished(to: str, *, iteration: int = 1, **update: Any) -> ev.StepFinished:
    return ev.StepFinished(Outcome.OK, "way", to, {"set": update}, iteration)


def drafted(to: str = "structure_review", path: str = "iterations/1/artifact.md") -> ev.Event:
    did = {"kind": "generate", "step": "draft", "agent": "claude"}
    return finished(to, artifact="Tea.\n", artifact_path=path, step=did, step_index=0)


def reviewed(step: str, to: str, *critiques: dict[str, Any]) -> ev.Event:
    did = {"kind": "critique", "step": step}
    return finished(to, critiques_by_step={step: list(critiques)}, step=did, step_index=1)


def judged(to: str = "fix") -> ev.Event:
    did = {"kind": "adjudicate", "step": "judge", "agent": "codex"}
    return finished(to, last_adjudication=JUDGED, step=did, step_index=3)


def refined(step: str, to: str, path: str = "iterations/1/artifact_refined.md") -> ev.StepFinished:
    did = {"kind": "refine", "step": step, "agent": "gemini", "mode": "edit"}
    return finished(to, iteration=2, artifact="Better.\n", artifact_path=path, step=did)


def test_calls_are_named_by_phase_constraint_and_agent(tmp_path: Path, story: Story) -> None:
    """Users who debug a prompt know the names from the documentation."""
    story.begin().ask("draft#1", "write", "Tea.").commit(drafted())
    story.ask("critics#1[0]/accuracy#1", "read", "{")
    story.ask("critics#1[0]/accuracy#2", "again", "{}")
    story.commit(reviewed("structure_review", "judge", CRITIQUE))
    story.ask("verdict#1", "judge", "...", agent="codex").commit(judged())
    story.ask("refine#1", "fix", "done", agent="gemini").commit(refined("fix", "draft"))

    shelf = Shelf(tmp_path, story).look()

    calls = {name for name in shelf.names if "prompt_" in name or "reply_" in name}
    assert calls == {
        f"iterations/1/{place.format(what)}"
        for what in ("prompt", "reply")
        for place in (
            "{}_generate_claude.txt",
            "critiques/{}_accuracy_claude.txt",
            "critiques/{}_accuracy_claude_2.txt",
            "{}_adjudicate_codex.txt",
            "{}_refine_gemini.txt",
        )
    }


def test_a_critique_is_written_while_its_step_still_waits(tmp_path: Path, story: Story) -> None:
    """A human who is asked about a finding wants to read the critique first."""
    read = {key: value for key, value in CRITIQUE.items() if key != "step"}
    story.begin().commit(drafted()).commit(ev.ItemFinished("critics#1[0]", read))

    early = Shelf(tmp_path, story).look().json("iterations/1/critiques/accuracy-claude.json")
    story.commit(reviewed("structure_review", "judge", {**CRITIQUE, "summary": "Labelled."}))
    late = Shelf(tmp_path, story).look()

    assert early == read
    assert late.json("iterations/1/critiques/accuracy-claude.json")["summary"] == "Labelled."
    assert sum("accuracy-claude" in name for name in late.names) == 1


def test_a_second_step_that_would_write_the_same_file_adds_its_name(
    tmp_path: Path, story: Story
) -> None:
    """Two reviews of one constraint in one round are two files."""
    story.begin().commit(drafted())
    story.commit(reviewed("structure_review", "style_review", CRITIQUE))
    story.commit(reviewed("style_review", "fix", {**CRITIQUE, "overall": "PASS"}))
    story.commit(refined("fix", "draft"))

    shelf = Shelf(tmp_path, story).look()

    critiques = "iterations/1/critiques/accuracy-claude"
    assert shelf.json(f"{critiques}.json")["overall"] == "FAIL"
    assert shelf.json(f"{critiques}_style_review.json")["overall"] == "PASS"


def test_reviews_and_constraints_with_similar_names_have_different_files(
    tmp_path: Path, story: Story
) -> None:
    """Long names are cut and some disks ignore case; a finding was lost with its file."""
    ids = [f"{'x' * 60}-one", f"{'x' * 60}-two", "Style", "style"]
    constraints = [{"id": each, "priority": 1, "summary": "s"} for each in ids]
    critiques = [{**CRITIQUE, "constraint_id": each} for each in ids]
    story.begin().commit(drafted()).commit(reviewed("structure_review", "judge", *critiques))

    shelf = Shelf(tmp_path, story).look()

    written = FlowLayout().definition({"source": {"constraints": constraints}})
    rules = [path for path in written if path.startswith("constraints/")]
    reviews = [name for name in shelf.names if "/critiques/" in name]
    assert len({name.casefold() for name in rules}) == len(ids)
    assert len({name.casefold() for name in reviews}) == len(ids)
    assert {shelf.json(name)["constraint_id"] for name in reviews} == {*ids}


def test_a_refinement_at_the_round_limit_is_shown_once(tmp_path: Path, story: Story) -> None:
    """It is pending, as the run ends there, and counts when more rounds are granted later."""
    did = refined("fix", "draft")
    story.begin().commit(drafted("fix"))
    story.commit(ev.StepWorked(Outcome.OK, did.delta))
    story.commit(ev.RunStopped(Status.LIMIT, "3 rounds without passing"))
    shelf = Shelf(tmp_path, story).look()
    ended = shelf.json("resolution.json")

    story.commit(ev.RunResumed()).commit(did)
    shelf.look()

    assert (shelf.folder / "iterations/1/artifact_refined.md").read_text() == "Better.\n"
    assert [line["phase"] for line in shelf.thread] == ["generate", "refine"]
    assert ended["reason"] == "max_iterations"
    assert ended["explanation"] == "3 rounds without passing"


@pytest.mark.parametrize(
    ("update", "reason", "decided_by"),
    [({}, "passed", "policy"), ({"approved_by": "ann"}, "approved", "ann")],
)
def test_only_a_human_approves_a_flow(
    tmp_path: Path, story: Story, update: dict[str, str], reason: str, decided_by: str
) -> None:
    """The record names who decided."""
    verdict = {"round": 1, "status": "APPROVED", "by": "policy"}
    delta = {"set": {"last_adjudication": verdict, **update}}
    story.begin().commit(ev.StepFinished(Outcome.OK, "judge/ok", None, delta))
    story.commit(ev.RunStopped(Status.COMPLETED))

    resolution = Shelf(tmp_path, story).look().json("resolution.json")

    assert (resolution["reason"], resolution["decided_by"]) == (reason, decided_by)
