import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.app.home import Home, init_home
from signoff.app.targets import discover, resolve
from signoff.errors import InvalidWorkflow, UnknownName, UsageError
from signoff.notation import CompileContext

FLOW = """
from signoff import Outcome, StepDef, Workflow

def work(ctx):
    return Outcome.OK, {{}}

{variable} = Workflow({name!r}, StepDef("only", handler=work, next={{Outcome.OK: None}}))
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A separate project; modules that its files import are removed afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    yield init_home(tmp_path, {}).home
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        paths = [
            str(getattr(sys.modules[name], "__file__", "")),
            *getattr(sys.modules[name], "__path__", ()),
        ]
        if any(path.startswith(str(tmp_path)) for path in paths):
            del sys.modules[name]


def write(path: Path, *, name: str = "review", variable: str = "WORKFLOW") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FLOW.format(name=name, variable=variable))
    return path


def context_of(home: Home) -> CompileContext:
    return CompileContext(home.root, home.path)


def test_a_file_inside_a_package_may_import_relatively(home: Home) -> None:
    """Workflows live in real packages too."""
    write(home.root / "packaged" / "inner.py")
    (home.root / "packaged" / "__init__.py").touch()
    (home.root / "packaged" / "flow.py").write_text("from .inner import WORKFLOW\n")

    target = resolve("packaged/flow.py", home.root, context_of(home))

    assert target.workflow.name == "review"


def test_a_module_is_a_target_from_below_the_root(home: Home) -> None:
    """`package.module:NAME` must not depend on the current folder."""
    write(home.root / "at_the_root.py", variable="FLOW")
    below = home.root / "below"
    below.mkdir()

    target = resolve("at_the_root:FLOW", below, context_of(home))

    assert target.location == "at_the_root:FLOW"


def test_an_unknown_name_in_a_file_is_reported_with_the_valid_ones(home: Home) -> None:
    """Users forget what they called it."""
    write(home.root / "flow.py", variable="REVIEW")

    with pytest.raises(UnknownName, match=r"flow\.py:REVIEW"):
        resolve("flow.py", home.root, context_of(home))


def test_a_missing_module_is_a_usage_error(home: Home) -> None:
    """Exit code 2, and no traceback of the import machinery."""
    with pytest.raises(UsageError, match="nowhere_at_all"):
        resolve("nowhere_at_all:X", home.root, context_of(home))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import os\nunknown_name\n", r"flow\.py:2: NameError"),
        ("x = (\n", r"flow\.py:1: SyntaxError"),
        ("import not_installed_here\n", r"flow\.py:1: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", r"flow\.py:1: SystemExit"),
    ],
)
def test_a_file_that_cannot_be_imported_is_reported_with_its_line(
    home: Home, source: str, complaint: str
) -> None:
    """The author needs the line, not our stack."""
    (home.root / "flow.py").write_text(source)

    with pytest.raises(InvalidWorkflow, match=complaint):
        resolve("flow.py", home.root, context_of(home))


def test_a_file_with_an_unknown_suffix_is_rejected_with_the_known_ones(home: Home) -> None:
    """The user has to learn which files can be read."""
    (home.root / "flow.md").write_text("steps: []\n")

    with pytest.raises(InvalidWorkflow, match=r"no notation reads \.md files \(use one of: \.py"):
        resolve("flow.md", home.root, context_of(home))


def test_a_file_does_not_hide_a_workflow_of_its_name(home: Home) -> None:
    """What a step writes to `review` must not keep the next run from starting."""
    write(home.flows / "any_file.py", name="review")
    (home.root / "review").write_text("a text")

    assert resolve("review", home.root, context_of(home)).workflow.name == "review"


def test_a_text_too_long_for_a_file_is_an_unknown_name(home: Home) -> None:
    """A user who passes a prompt has to learn what to pass instead."""
    with pytest.raises(UsageError, match="unknown workflow 'xxx"):
        resolve("x" * 10_000, home.root, context_of(home))


def test_configured_folders_and_modules_are_searched(home: Home) -> None:
    """Teams keep their workflows in their packages."""
    write(home.root / "folder" / "one.py", name="one")
    write(home.root / "searched_package" / "sub" / "two.py", name="two")
    (home.root / "searched_package" / "__init__.py").touch()

    found = discover(context_of(home), ["folder", "searched_package.sub"])

    assert found.names == ["one", "two"]
    assert found.problems == ()


def test_all_files_that_cannot_be_imported_are_reported_together(home: Home) -> None:
    """Fixing one per try would waste a morning."""
    (home.flows / "a.py").write_text("import not_installed_here\nWORKFLOW = 1\n")
    (home.flows / "b.py").write_text("WORKFLOW = (\n")
    (home.flows / "c.py").write_text("WORKFLOW = 5\n")

    with pytest.raises(InvalidWorkflow) as caught:
        resolve("review", home.root, context_of(home))

    assert [Path(p.where.rstrip(":0123456789")).name for p in caught.value.problems] == [
        "a.py",
        "b.py",
        "c.py",
    ]


def test_a_broken_flow_is_named_once_with_its_line(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Editors open `file:line`; a name that appears twice is not one."""
    monkeypatch.chdir(home.root)
    flow = home.flows / "flow.yaml"
    flow.write_text("workflow:\n  - step: draft\n")

    (problem,) = discover(context_of(home)).problems

    assert problem.where == f"{flow}:2"


def test_a_broken_file_does_not_keep_other_workflows_from_running(home: Home) -> None:
    """A mistake in one file must not stop the whole team."""
    write(home.flows / "good.py", name="good")
    (home.flows / "bad.py").write_text("WORKFLOW = (\n")

    target = resolve("good", home.root, context_of(home))

    assert target.workflow.name == "good"
    assert len(target.problems) == 1


def test_two_workflows_of_one_name_are_rejected_with_both_paths(home: Home) -> None:
    """Running either of them would be a guess."""
    write(home.flows / "one.py", name="review")
    write(home.flows / "two.py", name="review")

    with pytest.raises(UsageError, match=r"one\.py:WORKFLOW or .*two\.py"):
        resolve("review", home.root, context_of(home))


@pytest.mark.parametrize("folder", [".signoff/flows", "team"])
def test_a_workflow_of_the_project_goes_before_a_skill_of_the_library(
    home: Home, folder: str
) -> None:
    """A new skill in a later release must not take a project's name away."""
    write(home.root / folder / "own.py", name="code-review")
    searched = ["team"] if folder == "team" else []
    context = CompileContext(home.root, home.path, workflows=searched)

    found = resolve("code-review", home.root, context, searched)

    assert found.location == f"{folder}/own.py:WORKFLOW"
    assert resolve("doc-sync", home.root, context, searched).location == "skill:doc-sync"
    library = resolve("skill:code-review", home.root, context, searched)
    assert (library.location, library.workflow.total_steps) == ("skill:code-review", 7)


def test_two_things_of_the_project_with_one_name_have_to_be_told_apart(home: Home) -> None:
    """Which of them is meant is not for signoff to guess."""
    write(home.flows / "one.py", name="own")
    write(home.path / "skills" / "two.py", name="own")

    with pytest.raises(UsageError, match=r"\.signoff/flows/one\.py:WORKFLOW or skill:own"):
        resolve("own", home.root, context_of(home))


def test_a_skill_with_the_name_of_one_in_the_library_is_reported_with_both_places(
    home: Home,
) -> None:
    """Agents call skills by name alone."""
    write(home.path / "skills" / "own.py", name="code-review")

    with pytest.raises(InvalidWorkflow, match=r"defined twice: library and .*own\.py"):
        resolve("code-review", home.root, context_of(home))
