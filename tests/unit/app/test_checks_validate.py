import pytest

from signoff.app.checks import validate
from signoff.app.project import Project
from signoff.app.start import plan
from signoff.errors import ConfigError

GOOD = """
from signoff import Outcome, StepDef, Workflow
WORKFLOW = Workflow("good", StepDef("only", next={Outcome.OK: None}))
"""
BAD = """
from signoff import Outcome, StepDef, Workflow
WORKFLOW = Workflow("bad", StepDef("a", next={Outcome.OK: "z"}), StepDef("b"))
"""


def test_each_problem_of_a_file_names_the_line_of_its_step(project: Project) -> None:
    """A workflow of forty steps is long, and editors jump to `file:line`."""
    file = project.home.root / "places.py"
    file.write_text(
        "import signoff\n"
        "from signoff import Outcome, StepDef, Workflow\n"
        "WORKFLOW = Workflow(\n"
        "    'bad',\n"
        "    StepDef('a', next={Outcome.OK: 'z'}),\n"
        "    signoff.StepDef(\n"
        "        'b',\n"
        "    ),\n"
        ")\n"
    )

    (checked,) = validate(["places.py"], project.cwd, isolated(project))

    lines = {p.where.removeprefix(f"{file}:") for p in checked.problems}
    assert lines == {"5: step 'a'", "3: workflow", "6: step 'b'"}


def test_a_step_whose_line_cannot_be_known_names_the_workflows(project: Project) -> None:
    """Steps can be created in a loop; a wrong line would be worse than a rough one."""
    (project.home.root / "looped.py").write_text(
        "from signoff import Outcome, StepDef, Workflow\n"
        "steps = [StepDef(f'step-{n}', next={Outcome.OK: 'z'}) for n in range(2)]\n"
        "WORKFLOW = Workflow('bad', *steps)\n"
    )

    (checked,) = validate(["looped.py"], project.cwd, isolated(project))

    assert {p.where.partition("looped.py:")[2][:2] for p in checked.problems} == {"3:"}


def test_an_unknown_kind_of_agent_is_reported_with_its_line(project: Project) -> None:
    """Otherwise the run would fail at its first call, perhaps hours after its start."""
    (project.home.root / "good.py").write_text(GOOD)
    config = project.home.config
    config.write_text("agents:\n  ann: {kind: manuel}\n  bob: {kind: 'house:Model'}\n")

    settings, good = validate(["good.py"], project.cwd, isolated(project))

    (problem,) = settings.problems
    assert str(problem).startswith(f"{config}:2: agents.ann: unknown kind 'manuel' (kinds: ")
    assert "manual" in problem.remedy
    assert good.valid
    planned = plan(project.cwd, isolated(project), "good.py", {})
    assert planned.warnings == (str(problem),)


@pytest.mark.parametrize("kind", ["claude", "openai", "command"])
def test_an_unknown_option_of_an_agent_is_reported_before_the_start(
    project: Project, kind: str
) -> None:
    """The run failed at its first call, with an error of Python."""
    (project.home.root / "good.py").write_text(GOOD)
    config = project.home.config
    config.write_text(f"agents:\n  ann:\n    kind: {kind}\n    modle: x\n")

    settings, good = validate(["good.py"], project.cwd, isolated(project))

    (problem,) = settings.problems
    assert str(problem).startswith(
        f"{config}:4: agents.ann: unknown option 'modle' (did you mean 'model'? valid: "
    )
    assert good.valid
    with pytest.raises(ConfigError, match="unknown option 'modle'"):
        plan(project.cwd, isolated(project), "good.py", {})


def test_a_role_without_an_agent_is_a_problem_with_its_line(project: Project) -> None:
    """Otherwise it is found when a step asks for it, an hour into a run."""
    config = project.home.config
    config.write_text("roles:\n  architect: missing\n")

    (checked,) = validate([], project.cwd, isolated(project))

    (problem,) = checked.problems
    assert str(problem).startswith(
        f"{config}:2: roles.architect: unknown agent 'missing' (name one of: "
    )


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("no_such_module:look", "No module named 'no_such_module'"),
        ("broken_checks:look", "not today"),
        ("json:loads", ""),
    ],
)
def test_a_check_that_cannot_be_imported_is_a_warning(
    project: Project, function: str, why: str
) -> None:
    """A spelling mistake in the settings should not wait for the first review."""
    (project.home.root / "good.py").write_text(GOOD)
    (project.home.root / "broken_checks.py").write_text("raise OSError('not today')\n")
    config = project.home.config
    config.write_text(f"agents:\n  tidy:\n    kind: check\n    function: '{function}'\n")

    checked = validate(["good.py"], project.cwd, isolated(project))

    remarks = [warning for each in checked for warning in each.warnings]
    assert all(each.valid for each in checked)
    assert bool(remarks) is bool(why)
    assert all(f"{config}:4: agents.tidy: " in warning and why in warning for warning in remarks)


def test_the_skills_of_the_project_are_checked_too(project: Project) -> None:
    """They can be run by name, and a broken one would be noticed by the agent that needs it."""
    folder = project.home.path / "skills"
    folder.mkdir()
    (folder / "good.py").write_text(GOOD)
    (folder / "bad.py").write_text(BAD)

    good, bad = validate([], project.cwd, isolated(project))

    assert (good.workflow, good.target) == ("good", str(folder / "good.py"))
    assert all("bad.py" in problem.where for problem in bad.problems)
    assert len(bad.problems) >= 3


def isolated(project: Project) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(project.cwd / "user")}


def test_what_agents_lack_on_this_machine_is_a_warning_and_never_a_problem(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipelines check definitions where no agent is installed and no key is set."""
    for name in ("OPENAI_API_KEY", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)
    project.home.config.write_text(
        "agents:\n"
        "  mine: {kind: openai, model: m, base_url: 'http://localhost:1/v1', key_env: MY_KEY}\n"
        "  local-server: {kind: openai, model: m, base_url: 'http://localhost:1/v1'}\n"
        "  lint: {kind: check, argv: [no-such-linter]}\n"
    )
    flow = project.home.root / "flow.yaml"
    flow.write_text(
        "goal: x\nconstraints: {inline: {short: Short.}}\n"
        "workflow:\n  - {step: generate, agent: openai, model: m}\n"
        "  - {step: critique, agent: lint}\n"
    )

    settings, checked = validate(["flow.yaml"], project.cwd, isolated(project))

    assert settings.valid
    assert checked.valid
    assert [warning.partition(": ")[2] for warning in settings.warnings] == [
        "agents.mine needs a key, but MY_KEY is not set",
        "agents.lint runs no-such-linter, which is not on PATH",
    ]
    assert "the key of openai is not set, and a run asks it" in checked.warnings
