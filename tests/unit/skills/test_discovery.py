import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import signoff.skills.library
from signoff.core.errors import InvalidWorkflow, UnknownName
from signoff.notation import CompileContext
from signoff.skills import discover_workflows
from signoff.skills.discovery import (
    InvalidSkill,
    all_skills,
    find_skill,
    find_source,
    skill_names,
)

SKILL = """
from signoff.skills import Outcome, StepDef, Workflow

{more}
WORKFLOW = Workflow({name}, StepDef("only", "Only", ["Do it."], next={{Outcome.OK: None}}))
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project without skills; modules that are imported from it are removed afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write(path: Path, name: str, more: str = "", literal: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SKILL.format(name=repr(name) if literal else name, more=more))
    return path


def context(project: Path, *workflows: str) -> CompileContext:
    return CompileContext(project, project / ".signoff", workflows=workflows, agents={})


def test_the_workflows_of_a_folder_are_found_by_name(project: Path) -> None:
    """Modules next to them, such as helpers, are not even imported."""
    write(project / "a.py", "alpha", 'OTHER = Workflow("x", StepDef("y", next={Outcome.OK: None}))')
    write(project / "deep" / "b.py", "beta")
    (project / "helper.py").write_text("raise SystemExit('imported')\n")

    assert sorted(discover_workflows(project)) == ["alpha", "beta"]
    assert discover_workflows(str(project))["alpha"].total_steps == 1


def test_the_workflows_of_a_package_are_found_by_its_name_or_itself() -> None:
    """The library is a package like any other, and the default."""
    library = discover_workflows("signoff.skills.library")

    assert discover_workflows(signoff.skills.library) == discover_workflows() == library
    assert {workflow.name for workflow in library.values()} == set(library)


def test_a_module_is_imported_when_its_workflow_is_first_used(project: Path) -> None:
    """Listing skills must not run the code of any, and a broken one must not hide the others."""
    write(project / "good.py", "good")
    write(project / "bad.py", "bad", "import not_installed_here")
    (project / "named.py").write_text(
        "from signoff.skills import *\nMADE = print('imported')\n"
        "WORKFLOW = Workflow(name='named', validate=False)\n"
    )
    before = set(sys.modules)

    found = discover_workflows(project)

    assert sorted(found) == ["bad", "good", "named"]
    assert "bad" in found
    assert len(found) == 3
    assert set(sys.modules) == before
    assert found["good"] is found["good"]
    with pytest.raises(InvalidSkill, match=r"bad.py:4: ModuleNotFoundError"):
        found["bad"]


def test_one_error_lists_every_unreadable_module_and_every_duplicate(project: Path) -> None:
    """Fixing one per try would waste a morning; two modules of one name are an error at once."""
    for file, name in (("one", "plan"), ("two", "plan"), ("three", "look")):
        write(project / f"{file}.py", name, "raise SystemExit('imported')")
    write(project / "broken.py", "NAME", "import not_installed_here", literal=False)
    (project / "cut.py").write_text("WORKFLOW = (\n")

    with pytest.raises(InvalidWorkflow) as caught:
        discover_workflows(project)

    assert len(caught.value.problems) == 3
    for text in ("broken.py:4", "not_installed_here", "cut.py:1", "'plan'", "one.py", "two.py"):
        assert text in str(caught.value)
    assert "SystemExit" not in str(caught.value)


def test_only_the_skill_that_is_named_is_imported(project: Path) -> None:
    """A broken skill must not stop an agent that follows another one."""
    write(project / ".signoff/skills/good.py", "good")
    write(project / ".signoff/skills/bad.py", "bad", "raise SystemExit('good')")

    assert find_skill("good", context(project)).name == "good"
    with pytest.raises(InvalidSkill, match=r"skill 'bad' cannot be used: .*bad.py:4: SystemExit"):
        find_skill("bad", context(project))


def test_a_name_that_the_source_does_not_show_is_found_too(project: Path) -> None:
    """An author may build the name."""
    write(project / ".signoff/skills/one.py", "'-'.join(['made', 'up'])", literal=False)

    assert find_skill("made-up", context(project)).name == "made-up"
    assert "made-up" in skill_names(context(project))


def test_an_unknown_name_is_reported_with_the_modules_that_cannot_be_read(project: Path) -> None:
    """The skill may be in one of those."""
    folder = project / ".signoff/skills"
    write(folder / "one.py", "one")
    (folder / "cut.py").write_text("WORKFLOW = (\n")
    (folder / "binary.py").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidSkill) as caught:
        find_skill("two", context(project))

    assert "valid names:" in str(caught.value)
    assert "cut.py:1: SyntaxError" in str(caught.value)
    assert "binary.py: cannot be read" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_skills_of_one_name_are_refused_wherever_they_are(project: Path) -> None:
    """Otherwise it would depend on the order of places which one an agent follows."""
    write(project / ".signoff/skills/one.py", "same")
    write(project / "more/two.py", "same")
    places = context(project, "more")

    with pytest.raises(InvalidSkill, match=r"one\.py and .*two\.py"):
        find_skill("same", places)
    skills, problems = all_skills(places)
    assert "same" not in [each.workflow.name for each in skills]
    assert len(problems) == 1


def test_a_file_in_two_places_is_one_skill(project: Path) -> None:
    """The settings may name the folder that is searched anyway."""
    write(project / ".signoff/skills/one.py", "own")

    skills, problems = all_skills(context(project, ".signoff/skills", "signoff.skills.library"))

    assert [each.workflow.name for each in skills].count("own") == 1
    assert problems == []


def test_skills_of_the_settings_are_found_but_are_no_names_of_the_notation(project: Path) -> None:
    """They are ordinary workflows too: a name must not mean two things in `signoff run`."""
    write(project / "more/two.py", "further")
    places = context(project, "more")

    assert find_source("further", places).origin.endswith("two.py")
    assert "further" not in skill_names(places)


@pytest.mark.parametrize("name", ["skill_of_a_test.py", "skill_of_a_test:WORKFLOW"])
def test_a_file_or_a_module_can_be_named_too(
    project: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An author tries a skill before it is anywhere where names are found."""
    write(project / "skill_of_a_test.py", "own")
    monkeypatch.chdir(project)

    assert find_skill(name, context(project)).name == "own"


@pytest.mark.parametrize("name", ["gone.py", "gone_module:WORKFLOW", "json:WORKFLOW"])
def test_a_file_or_a_module_without_a_skill_is_refused(
    project: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names what was looked for."""
    monkeypatch.chdir(project)

    with pytest.raises((UnknownName, InvalidSkill), match=name.partition(":")[0]):
        find_skill(name, context(project))
