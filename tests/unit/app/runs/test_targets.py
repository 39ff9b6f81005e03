import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff import plugins
from signoff.app.runs import targets
from signoff.app.runs.start import plan, start
from signoff.app.settings.checks import validate
from signoff.app.settings.home import Home, init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import AgentSettings, Settings
from signoff.core.errors import ConfigError, InvalidParams, InvalidWorkflow, UnknownName, UsageError
from signoff.documents.source_file import SourceFile
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

    target = targets.resolve("packaged/flow.py", home.root, context_of(home))

    assert target.workflow.name == "review"


def test_a_module_is_a_target_from_below_the_root(home: Home) -> None:
    """`package.module:NAME` must not depend on the current folder."""
    write(home.root / "at_the_root.py", variable="FLOW")
    below = home.root / "below"
    below.mkdir()

    target = targets.resolve("at_the_root:FLOW", below, context_of(home))

    assert target.location == "at_the_root:FLOW"


def test_an_unknown_name_in_a_file_is_reported_with_the_valid_ones(home: Home) -> None:
    """Users forget what they called it."""
    write(home.root / "flow.py", variable="REVIEW")

    with pytest.raises(UnknownName, match=r"flow\.py:REVIEW"):
        targets.resolve("flow.py", home.root, context_of(home))


def test_a_missing_module_is_a_usage_error(home: Home) -> None:
    """Exit code 2, and no traceback of the import machinery."""
    with pytest.raises(UsageError, match="nowhere_at_all"):
        targets.resolve("nowhere_at_all:X", home.root, context_of(home))


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
        targets.resolve("flow.py", home.root, context_of(home))


def test_a_file_with_an_unknown_suffix_is_rejected_with_the_known_ones(home: Home) -> None:
    """The user has to learn which files can be read."""
    (home.root / "flow.md").write_text("steps: []\n")

    with pytest.raises(InvalidWorkflow, match=r"no notation reads \.md files \(use one of: \.py"):
        targets.resolve("flow.md", home.root, context_of(home))


def test_a_file_does_not_hide_a_workflow_of_its_name(home: Home) -> None:
    """What a step writes to `review` must not keep the next run from starting."""
    write(home.flows / "any_file.py", name="review")
    (home.root / "review").write_text("a text")

    assert targets.resolve("review", home.root, context_of(home)).workflow.name == "review"


def test_a_text_too_long_for_a_file_is_an_unknown_name(home: Home) -> None:
    """A user who passes a prompt has to learn what to pass instead."""
    with pytest.raises(UsageError, match="unknown workflow 'xxx"):
        targets.resolve("x" * 10_000, home.root, context_of(home))


def test_configured_folders_and_modules_are_searched(home: Home) -> None:
    """Teams keep their workflows in their packages."""
    write(home.root / "folder" / "one.py", name="one")
    write(home.root / "searched_package" / "sub" / "two.py", name="two")
    (home.root / "searched_package" / "__init__.py").touch()

    found = targets.discover(context_of(home), ["folder", "searched_package.sub"])

    assert found.names == ["one", "two"]
    assert found.problems == ()


def test_all_files_that_cannot_be_imported_are_reported_together(home: Home) -> None:
    """Fixing one per try would waste a morning."""
    (home.flows / "a.py").write_text("import not_installed_here\nWORKFLOW = 1\n")
    (home.flows / "b.py").write_text("WORKFLOW = (\n")
    (home.flows / "c.py").write_text("WORKFLOW = 5\n")

    with pytest.raises(InvalidWorkflow) as caught:
        targets.resolve("review", home.root, context_of(home))

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

    (problem,) = targets.discover(context_of(home)).problems

    assert problem.where == f"{flow}:2"


def test_a_broken_file_does_not_keep_other_workflows_from_running(home: Home) -> None:
    """A mistake in one file must not stop the whole team."""
    write(home.flows / "good.py", name="good")
    (home.flows / "bad.py").write_text("WORKFLOW = (\n")

    target = targets.resolve("good", home.root, context_of(home))

    assert target.workflow.name == "good"
    assert len(target.problems) == 1


def test_two_workflows_of_one_name_are_rejected_with_both_paths(home: Home) -> None:
    """Running either of them would be a guess."""
    write(home.flows / "one.py", name="review")
    write(home.flows / "two.py", name="review")

    with pytest.raises(UsageError, match=r"one\.py:WORKFLOW or .*two\.py"):
        targets.resolve("review", home.root, context_of(home))


@pytest.mark.parametrize("folder", [".signoff/flows", "team"])
def test_a_workflow_of_the_project_goes_before_a_skill_of_the_library(
    home: Home, folder: str
) -> None:
    """A new skill in a later release must not take a project's name away."""
    write(home.root / folder / "own.py", name="code-review")
    searched = ["team"] if folder == "team" else []
    context = CompileContext(home.root, home.path, workflows=searched)

    found = targets.resolve("code-review", home.root, context, searched)

    assert found.location == f"{folder}/own.py:WORKFLOW"
    assert targets.resolve("doc-sync", home.root, context, searched).location == "skill:doc-sync"
    library = targets.resolve("skill:code-review", home.root, context, searched)
    assert (library.location, library.workflow.total_steps) == ("skill:code-review", 7)


def test_two_things_of_the_project_with_one_name_have_to_be_told_apart(home: Home) -> None:
    """Which of them is meant is not for signoff to guess."""
    write(home.flows / "one.py", name="own")
    write(home.path / "skills" / "two.py", name="own")

    with pytest.raises(UsageError, match=r"\.signoff/flows/one\.py:WORKFLOW or skill:own"):
        targets.resolve("own", home.root, context_of(home))


def test_a_skill_with_the_name_of_one_in_the_library_is_reported_with_both_places(
    home: Home,
) -> None:
    """Agents call skills by name alone."""
    write(home.path / "skills" / "own.py", name="code-review")

    with pytest.raises(InvalidWorkflow, match=r"defined twice: library and .*own\.py"):
        targets.resolve("code-review", home.root, context_of(home))


# Tests of notations: what compilers get, and that a run's workflow is compiled again the same.


TOY = """
from signoff import Outcome, StepDef, Workflow
from signoff.core.errors import InvalidWorkflow, Problem
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
def there(project: Project) -> Home:
    (project.home.root / "flow.toml").write_text("")
    (project.home.root / "theme.md").write_text("Write a poem.")
    return project.home


def isolated(there: Home) -> dict[str, str]:
    return {
        "SIGNOFF_HOME": str(there.path),
        "XDG_CONFIG_HOME": str(there.root / "nowhere"),
    }


def executable(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_a_file_option_is_found_again_from_the_projects_root(there: Home) -> None:
    """A run started in a sub-folder is resumed from somewhere else."""
    (there.root / "deep").mkdir()

    options = targets.portable_options({"theme": "../theme.md"}, there.root / "deep", there.root)

    assert options == {"theme": "theme.md"}


@pytest.mark.parametrize("target", ["flow.py", "some.module:NAME"])
def test_a_python_workflow_rejects_options_of_notations(there: Home, target: str) -> None:
    """An option that is silently ignored is worse than none."""
    (there.root / "flow.py").write_text("raise AssertionError('never imported')")
    context = CompileContext(there.root, options={"goal": "g", "allow_scripts": True})

    with pytest.raises(UsageError, match=r"--goal and --allow-scripts .* Python"):
        targets.resolve(target, there.root, context)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("type: x\nsteps: [{name: a, command: [x]}]\n", {"goal": "goal.yaml"}),
        ("goal: x\nworkflow: [{step: generate}]\n", {"color": "red"}),
    ],
)
def test_an_option_of_another_notation_is_rejected(
    there: Home, text: str, options: dict[str, str]
) -> None:
    """The user would believe that the run has a goal."""
    (there.root / "file.yaml").write_text(text)

    with pytest.raises(UsageError, match=r"--(goal|color) cannot be used with .*file\.yaml"):
        plan(there.root, isolated(there), "file.yaml", {}, options=options)


async def test_the_workflow_of_a_name_without_a_file_is_found_again(
    project: Project, there: Home
) -> None:
    """A profile or a skill has a name and no file, but its runs can be resumed."""
    planned = plan(there.root, isolated(there), "toy:bear", {}, options={"color": "red"})
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
    there: Home, text: str, params: dict[str, str], valid: str
) -> None:
    """Otherwise the run would be paid for without the misspelled parameter."""
    (there.root / "file.yaml").write_text(text)

    with pytest.raises(InvalidParams, match=valid):
        plan(there.root, isolated(there), "file.yaml", params)


async def test_a_moved_file_is_compiled_with_the_options_of_its_run(
    project: Project, there: Home
) -> None:
    """`resume --target` names another file of the flow, not another goal."""
    planned = plan(
        there.root,
        isolated(there),
        "flow.toml",
        {},
        options={"theme": "theme.md"},
    )
    await start(project, planned.target, {}, name="one")
    (there.root / "moved.toml").write_text("")

    again = project.find("moved.toml", project.run("one"))

    assert again.workflow.source["theme"] == "Write a poem."


async def test_the_default_agent_is_fixed_when_a_run_starts(
    project: Project, there: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installing another agent meanwhile must not change a run that is half done."""
    monkeypatch.setenv("PATH", str(there.root / "nothing"))
    planned = plan(
        there.root,
        isolated(there),
        "flow.toml",
        {},
        options={"theme": "theme.md"},
    )
    await start(project, planned.target, {}, name="one")
    executable(there.root / "bin" / "claude")
    monkeypatch.setenv("PATH", str(there.root / "bin"))

    again = project.find_again(project.run("one"))
    today = targets.compile_context(there, project.settings)

    assert again.workflow.digest == planned.target.workflow.digest
    assert again.workflow.source["given"]["default_agent"] == "auto"
    assert today.default_agent == "claude"


def test_claude_is_the_default_if_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow that names no agent should work with the installed ones."""
    monkeypatch.setenv("PATH", str(tmp_path))
    executable(tmp_path / "codex")
    there = Home(tmp_path / ".signoff")

    bare = targets.compile_context(there, Settings())
    configured = targets.compile_context(
        there, Settings(agents={"claude": AgentSettings("command")})
    )

    assert (bare.default_agent, bare.installed) == ("auto", ["codex"])
    assert (configured.default_agent, configured.installed) == ("claude", ["claude", "codex"])


def test_the_default_agent_is_one_that_the_program_or_the_settings_bring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows the instructions of steps, whatever is on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert targets.default_agent(["writer"]) == "auto"
    assert targets.default_agent(["writer", "claude"]) == "claude"

    executable(tmp_path / "claude")
    assert targets.default_agent([]) == "claude"


def test_a_compiler_gets_the_agents_of_the_settings(there: Home) -> None:
    """What a step may do depends on the agents behind the names."""
    settings = Settings(
        agents={"writer": AgentSettings("ollama", options={"model": "qwen3"})},
        roles={"critic": "writer", "judge": "codex"},
    )

    agents = targets.compile_context(there, settings).agents

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

    context = targets.compile_context(Home(tmp_path / ".signoff"), Settings())

    assert (context.default_agent, context.installed) == ("claude", ["claude"])


def test_checks_and_diagrams_do_not_need_what_only_a_run_needs(there: Home) -> None:
    """Authors check a flow long before they have a goal."""
    (there.flows / "named.toml").write_text("")

    (checked,) = validate(["flow.toml"], there.root, isolated(there))
    (found,) = validate([], there.root, isolated(there))
    drawn = targets.find_workflow("named", there.root, isolated(there))

    assert checked.valid
    assert (found.valid, found.workflow) == (True, "named")
    assert drawn.name == "named"
    with pytest.raises(InvalidWorkflow, match="has no theme"):
        plan(there.root, isolated(there), "named", {})


def test_warnings_are_not_part_of_the_frozen_definition(there: Home) -> None:
    """Better wording in a later version must not keep runs from resuming."""
    context = CompileContext(there.root, check_only=True)

    workflow = targets.resolve("flow.toml", there.root, context).workflow

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

    assert targets.notation_of(SourceFile(file)).name == notation


def test_a_file_that_two_notations_recognize_has_to_name_one(tmp_path: Path) -> None:
    """Guessing would run, and pay for, something that the user did not write."""
    file = tmp_path / "file.yaml"
    file.write_text("workflow: []\nsteps: []\n")

    with pytest.raises(InvalidWorkflow, match=r"'flows' and 'contracts'.*notation: flows"):
        targets.notation_of(SourceFile(file))


def test_an_unknown_notation_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    """A plug-in that is not installed looks like a typo, and the list shows which it is."""
    file = tmp_path / "file.yaml"
    file.write_text("notation: flow\nworkflow: []\n")

    with pytest.raises(UnknownName, match="valid names: flows, contracts, toy"):
        targets.notation_of(SourceFile(file))


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

    assert targets.compile_path(file, CompileContext(tmp_path)).notation == notation


def test_a_broken_plug_in_does_not_hide_others(
    toy: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One bad package must not keep every workflow of the user from running."""
    (toy / "toy_notation.py").write_text("import nothing_of_that_name\n")
    file = tmp_path / "flow.yaml"
    file.write_text("goal: x\nworkflow: [{step: generate}]\n")

    with caplog.at_level(logging.WARNING):
        notation = targets.notation_of(SourceFile(file))

    assert notation.name == "flows"
    assert "'toy' is not available" in caplog.text


def test_a_name_of_a_notation_is_run_without_its_scheme(there: Home, project: Project) -> None:
    """The run stores the whole target, so a resume needs no search."""
    planned = plan(there.root, isolated(there), "bear", {}, options={"color": "red"})

    assert planned.target.location == "toy:bear"
    assert planned.target.workflow.source["theme"] == "red"
    (checked,) = validate(["ball"], there.root, isolated(there))
    assert (checked.workflow, checked.valid) == ("ball", True)


def test_two_notations_with_the_same_option_are_named(toy: Path) -> None:
    """Which of them would get the value cannot be guessed."""
    (toy / "toy_notation.py").write_text(TOY.replace("--theme", "--goal"))

    with pytest.raises(ConfigError, match="'flows' and 'toy' both define the option --goal"):
        plugins.options_of("run")
