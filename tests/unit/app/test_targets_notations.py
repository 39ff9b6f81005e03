"""Tests of notations: what compilers get, and that a run's workflow is compiled again the same."""

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff import plugins
from signoff.app.checks import validate
from signoff.app.home import Home
from signoff.app.project import Project
from signoff.app.settings import AgentSettings, Settings
from signoff.app.start import plan, start
from signoff.app.targets import (
    compile_context,
    compile_path,
    default_agent,
    find_workflow,
    notation_of,
    portable_options,
    resolve,
)
from signoff.documents.source_file import SourceFile
from signoff.errors import ConfigError, InvalidParams, InvalidWorkflow, UnknownName, UsageError
from signoff.notation import CompileContext

TOY = """
from signoff import Outcome, StepDef, Workflow
from signoff.errors import InvalidWorkflow, Problem
from signoff.notation import Notation, NotationOption, OptionKind

def work(ctx):
    return Outcome.OK, {}

def workflow(name, text):
    return Workflow(
        name,
        StepDef("only", handler=work, next={Outcome.OK: None}),
        notation="toy",
        source={"theme": text},
        warnings=[f"{name} is a toy"],
    )

def compile_file(file, context):
    theme = context.options.get("theme")
    if theme is None and not context.check_only:
        raise InvalidWorkflow(file.path.name, [Problem(str(file.path), "has no theme")])
    return workflow(file.path.stem, (context.root / theme).read_text() if theme else "")

def resolve(name, context):
    return workflow(name, context.options.get("color") or f"at home: {context.home is not None}")

def names(context):
    return ["bear", "ball"]

NOTATION = Notation(
    name="toy",
    label="toy",
    names="toy_notation:names",
    compile="toy_notation:compile_file",
    suffixes=(".toml", ".yaml"),
    recognize=lambda content: "toys" in content,
    scheme="toy",
    resolve="toy_notation:resolve",
    options=(
        NotationOption("theme", "--theme", "What it is about.", OptionKind.FILE),
        NotationOption("color", "--color", "Its color."),
    ),
)
"""


@pytest.fixture(autouse=True)
def toy(tmp_path: Path) -> Iterator[Path]:
    """A package that brings a notation for `.toml` files, as installed packages do."""
    search_path = list(sys.path)
    folder = tmp_path / "site"
    about = folder / "toy_notation-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-notation\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[signoff.notations]\ntoy = toy_notation:NOTATION\n")
    (folder / "toy_notation.py").write_text(TOY)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path[:] = search_path
    for name in ("toy_notation", "claude_agent_sdk"):
        sys.modules.pop(name, None)


@pytest.fixture
def home(project: Project) -> Home:
    (project.home.root / "flow.toml").write_text("")
    (project.home.root / "theme.md").write_text("Write a poem.")
    return project.home


def isolated(home: Home) -> dict[str, str]:
    return {"SIGNOFF_HOME": str(home.path), "XDG_CONFIG_HOME": str(home.root / "nowhere")}


def executable(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_a_file_option_is_found_again_from_the_projects_root(home: Home) -> None:
    """A run started in a sub-folder is resumed from somewhere else."""
    (home.root / "deep").mkdir()

    options = portable_options({"theme": "../theme.md"}, home.root / "deep", home.root)

    assert options == {"theme": "theme.md"}


@pytest.mark.parametrize("target", ["flow.py", "some.module:NAME"])
def test_a_python_workflow_rejects_options_of_notations(home: Home, target: str) -> None:
    """An option that is silently ignored is worse than none."""
    (home.root / "flow.py").write_text("raise AssertionError('never imported')")
    context = CompileContext(home.root, options={"goal": "g", "allow_scripts": True})

    with pytest.raises(UsageError, match=r"--goal and --allow-scripts .* Python"):
        resolve(target, home.root, context)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("type: x\nsteps: [{name: a, command: [x]}]\n", {"goal": "goal.yaml"}),
        ("goal: x\nworkflow: [{step: generate}]\n", {"color": "red"}),
    ],
)
def test_an_option_of_another_notation_is_rejected(
    home: Home, text: str, options: dict[str, str]
) -> None:
    """The user would believe that the run has a goal."""
    (home.root / "file.yaml").write_text(text)

    with pytest.raises(UsageError, match=r"--(goal|color) cannot be used with .*file\.yaml"):
        plan(home.root, isolated(home), "file.yaml", {}, options=options)


async def test_the_workflow_of_a_name_without_a_file_is_found_again(
    project: Project, home: Home
) -> None:
    """A profile or a skill has a name and no file, but its runs can be resumed."""
    planned = plan(home.root, isolated(home), "toy:bear", {}, options={"color": "red"})
    await start(project, planned.target, {}, name="one")

    again = project.find_again(project.run("one"))

    assert project.run("one").target == "toy:bear"
    assert again.workflow.source["theme"] == "red"
    assert again.workflow.digest == planned.target.workflow.digest


async def test_a_first_run_is_compiled_like_its_resume(tmp_path: Path) -> None:
    """The first run creates the home; without it, a compiler must not return another digest."""
    folder, environment = tmp_path / "new", {"XDG_CONFIG_HOME": str(tmp_path / "nowhere")}
    folder.mkdir()
    planned = plan(folder, environment, "toy:bear", {})

    with planned.open(folder, environment) as project:
        await start(project, planned.target, {}, name="one")
        again = project.find_again(project.run("one"))

        assert project.settings is planned.settings
        assert (folder / ".signoff/flows").is_dir()
        assert again.workflow.digest == planned.target.workflow.digest


@pytest.mark.parametrize(
    ("text", "params", "valid"),
    [
        ("goal: x\nworkflow: [{step: generate}]\n", {"foo": "bar"}, "it takes none"),
        ("type: x\nsteps: [{name: a, prompt: 'On {{ topic }}'}]\n", {"foo": "1"}, "valid: topic"),
        ("type: x\nparams: [a]\nsteps: [{name: a, command: [x]}]\n", {"b": "1"}, "valid: a"),
    ],
)
def test_an_unknown_parameter_is_rejected_before_anything_is_paid_for(
    home: Home, text: str, params: dict[str, str], valid: str
) -> None:
    """Otherwise the run would be paid for without the misspelled parameter."""
    (home.root / "file.yaml").write_text(text)

    with pytest.raises(InvalidParams, match=valid):
        plan(home.root, isolated(home), "file.yaml", params)


async def test_a_moved_file_is_compiled_with_the_options_of_its_run(
    project: Project, home: Home
) -> None:
    """`resume --target` names another file of the flow, not another goal."""
    planned = plan(home.root, isolated(home), "flow.toml", {}, options={"theme": "theme.md"})
    await start(project, planned.target, {}, name="one")
    (home.root / "moved.toml").write_text("")

    again = project.find("moved.toml", project.run("one"))

    assert again.workflow.source["theme"] == "Write a poem."


async def test_the_default_agent_is_fixed_when_a_run_starts(
    project: Project, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installing another agent meanwhile must not change a run that is half done."""
    monkeypatch.setenv("PATH", str(home.root / "nothing"))
    planned = plan(home.root, isolated(home), "flow.toml", {}, options={"theme": "theme.md"})
    await start(project, planned.target, {}, name="one")
    executable(home.root / "bin" / "claude")
    monkeypatch.setenv("PATH", str(home.root / "bin"))

    again = project.find_again(project.run("one"))
    today = compile_context(home, project.settings)

    assert again.workflow.digest == planned.target.workflow.digest
    assert again.workflow.source["given"]["default_agent"] == "auto"
    assert today.default_agent == "claude"


def test_claude_is_the_default_if_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow that names no agent should work with the installed ones."""
    monkeypatch.setenv("PATH", str(tmp_path))
    executable(tmp_path / "codex")
    home = Home(tmp_path / ".signoff")

    bare = compile_context(home, Settings())
    configured = compile_context(home, Settings(agents={"claude": AgentSettings("command")}))

    assert (bare.default_agent, bare.installed) == ("auto", ["codex"])
    assert (configured.default_agent, configured.installed) == ("claude", ["claude", "codex"])


def test_the_default_agent_is_one_that_the_program_or_the_settings_bring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows the instructions of steps, whatever is on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert default_agent(["writer"]) == "auto"
    assert default_agent(["writer", "claude"]) == "claude"

    executable(tmp_path / "claude")
    assert default_agent([]) == "claude"


def test_a_compiler_gets_the_agents_of_the_settings(home: Home) -> None:
    """What a step may do depends on the agents behind the names."""
    settings = Settings(
        agents={"writer": AgentSettings("ollama", options={"model": "qwen3"})},
        roles={"critic": "writer", "judge": "codex"},
    )

    agents = compile_context(home, settings).agents

    assert {name: (each.kind, each.model) for name, each in agents.items() if each.configured} == {
        "writer": ("ollama", "qwen3"),
        "critic": ("ollama", "qwen3"),
        "judge": ("codex", None),
    }
    assert agents["judge"].capabilities.edits_files
    assert not agents["critic"].capabilities.edits_files


def test_a_program_bundled_with_a_package_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`signoff[claude]` brings the program without putting it on PATH."""
    package = tmp_path / "claude_agent_sdk/_bundled"
    package.mkdir(parents=True)
    (tmp_path / "claude_agent_sdk/__init__.py").touch()
    (package / "claude").write_text("#!/bin/sh\n")
    (package / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.syspath_prepend(tmp_path)

    context = compile_context(Home(tmp_path / ".signoff"), Settings())

    assert (context.default_agent, context.installed) == ("claude", ["claude"])


def test_checks_and_diagrams_do_not_need_what_only_a_run_needs(home: Home) -> None:
    """Authors check a flow long before they have a goal."""
    (home.flows / "named.toml").write_text("")

    (checked,) = validate(["flow.toml"], home.root, isolated(home))
    (found,) = validate([], home.root, isolated(home))
    drawn = find_workflow("named", home.root, isolated(home))

    assert checked.valid
    assert (found.valid, found.workflow) == (True, "named")
    assert drawn.name == "named"
    with pytest.raises(InvalidWorkflow, match="has no theme"):
        plan(home.root, isolated(home), "named", {})


def test_warnings_are_not_part_of_the_frozen_definition(home: Home) -> None:
    """Better wording in a later version must not keep runs from resuming."""
    context = CompileContext(home.root, check_only=True)

    workflow = resolve("flow.toml", home.root, context).workflow

    assert "is a toy" not in workflow.definition_json


@pytest.mark.parametrize(
    ("text", "notation"),
    [
        ("type: x\nsteps: [{name: a, command: [x]}]\n", "contracts"),
        ("type: x\nstpes: []\n", "contracts"),
        ('{"type": "x", "steps": []}\n', "contracts"),
        ("workflow: [{step: generate}]\n", "flows"),
        ("goal: Write the steps of a dance.\nmax_iterations: 3\n", "flows"),
        ("toys: [bear]\n", "toy"),
        ("notation: toy\nworkflow: []\n", "toy"),
        ("steps: [\n", "flows"),
        ("- steps\n", "flows"),
        ("", "flows"),
    ],
)
def test_a_file_is_recognized_by_its_keys(tmp_path: Path, text: str, notation: str) -> None:
    """Users should not have to name the kind of a file that is obvious."""
    file = tmp_path / "file.yaml"
    file.write_text(text)

    assert notation_of(SourceFile(file)).name == notation


def test_a_file_that_two_notations_recognize_has_to_name_one(tmp_path: Path) -> None:
    """Guessing would run, and pay for, something that the user did not write."""
    file = tmp_path / "file.yaml"
    file.write_text("workflow: []\nsteps: []\n")

    with pytest.raises(InvalidWorkflow, match=r"'flows' and 'contracts'.*notation: flows"):
        notation_of(SourceFile(file))


def test_an_unknown_notation_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    """A plug-in that is not installed looks like a typo, and the list shows which it is."""
    file = tmp_path / "file.yaml"
    file.write_text("notation: flow\nworkflow: []\n")

    with pytest.raises(UnknownName, match="valid names: flows, contracts, toy"):
        notation_of(SourceFile(file))


@pytest.mark.parametrize(
    ("text", "notation"),
    [
        ("notation: contracts\ntype: x\nsteps: [{name: a, command: [x]}]\n", "contracts"),
        ("notation: flows\ngoal: x\nworkflow: [{step: generate}]\n", "flows"),
        ("notation: flows\ngoal: x\nallow_unreviewed: true\n", "flows"),
    ],
)
def test_a_file_may_name_its_notation(tmp_path: Path, text: str, notation: str) -> None:
    """It resolves a conflict, so every compiler has to accept the key."""
    file = tmp_path / "file.yaml"
    file.write_text(text)

    assert compile_path(file, CompileContext(tmp_path)).notation == notation


def test_a_broken_plug_in_does_not_hide_others(
    toy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One bad package must not keep every workflow of the user from running."""
    (toy / "toy_notation.py").write_text("import nothing_of_that_name\n")
    file = tmp_path / "flow.yaml"
    file.write_text("goal: x\nworkflow: [{step: generate}]\n")

    with caplog.at_level(logging.WARNING):
        notation = notation_of(SourceFile(file))

    assert notation.name == "flows"
    assert "'toy' is not available" in caplog.text


def test_a_name_of_a_notation_is_run_without_its_scheme(home: Home, project: Project) -> None:
    """The run stores the whole target, so a resume needs no search."""
    planned = plan(home.root, isolated(home), "bear", {}, options={"color": "red"})

    assert planned.target.location == "toy:bear"
    assert planned.target.workflow.source["theme"] == "red"
    (checked,) = validate(["ball"], home.root, isolated(home))
    assert (checked.workflow, checked.valid) == ("ball", True)


def test_two_notations_with_the_same_option_are_named(toy: Path) -> None:
    """Which of them would get the value cannot be guessed."""
    (toy / "toy_notation.py").write_text(TOY.replace("--theme", "--goal"))

    with pytest.raises(ConfigError, match="'flows' and 'toy' both define the option --goal"):
        plugins.options_of("run")
