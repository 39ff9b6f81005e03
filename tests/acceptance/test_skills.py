"""Skills on the command line: found by name, shown step by step, followed to the end."""

import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from tests.acceptance.cli_project import CliProject

SKILL = """
from typing import Annotated

from signoff.skills import AgentRole, Arg, Confidence, Dispatch, Outcome, StepContext, StepDef
from signoff.skills import Workflow, main

Mode = Annotated[str, Arg("How thorough to be", choices=("full", "quick"))]
Sure = Annotated[str, Arg("How sure you are", choices=tuple(Confidence))]
Round = Annotated[int, Arg(min=1, max=3)]


def plan(ctx: StepContext, mode: Mode = "full", topic: str = ""):
    print("imported code may print")
    return (Outcome.SKIP if mode == "quick" else Outcome.OK), {}


def look(ctx: StepContext, sure: Sure = "exploring", iteration: Round = 1):
    done = sure == "certain" or iteration >= 3
    return (Outcome.OK if done else Outcome.ITERATE), {}


def write(ctx: StepContext, verdict: str, topic: str = ""):
    return Outcome.OK, {}


REVIEW = Dispatch(AgentRole.QUALITY_REVIEWER, script="checks.review", context_vars={"why": "x"})
WORKFLOW = Workflow(
    "critic",
    StepDef("plan", "Plan", ["Plan the review.", "List the claims."], plan,
            {Outcome.OK: "look", Outcome.SKIP: "write"}),
    StepDef("look", "Look", ["Check each claim."], look,
            {Outcome.OK: "review", Outcome.ITERATE: "look"}),
    StepDef("review", "Review", ["Review the findings."], REVIEW,
            {Outcome.OK: "write", Outcome.FAIL: "look"}),
    StepDef("write", "Write", ["Write the verdict."], write, {Outcome.OK: None}),
    description="Checks the claims of a text.",
)
IMPORTED_AS = print("imported as", __name__)

if __name__ == "__main__":
    main(WORKFLOW)
"""

FIELDS = [
    *("workflow", "step", "total_steps", "step_id", "title", "actions"),
    *("next_command", "next_commands"),
]


@pytest.fixture
def critic(project: CliProject) -> CliProject:
    """A project with one skill."""
    project.write(".signoff/skills/critic.py", SKILL)
    return project


def shown(project: CliProject, *options: str) -> Any:
    """Returns a step, with the commands as they are without the folder of the project."""
    return unpinned(project, project.json("skill", "step", "critic", *options))


def unpinned(project: CliProject, step: Any) -> Any:
    """Returns what a command printed without the option that makes it work in any folder."""
    return json.loads(json.dumps(step).replace(f" --project-dir {project.folder}", ""))


def test_a_skill_is_listed_with_its_steps_and_origin(critic: CliProject) -> None:
    """Users and agents choose by the description."""
    entry = next(each for each in critic.json("skill", "list") if each["name"] == "critic")
    table = critic.signoff("skill", "list")

    assert entry == {
        "name": "critic",
        "description": "Checks the claims of a text.",
        "steps": 4,
        "origin": ".signoff/skills/critic.py",
    }
    assert re.search(r"^critic +4 +\S+critic.py +Checks the claims", table.stdout, re.MULTILINE)
    assert table.returncode == 0


def test_every_printed_command_works_in_any_folder(critic: CliProject) -> None:
    """Agents change the folder, and then get the steps of another project, or none."""
    critic.write("team/other.py", SKILL.replace('"critic"', '"other"'))
    critic.write("checks/review.py", "print('checked')")
    below, elsewhere = critic.folder / "team", critic.folder / "home"
    elsewhere.mkdir()
    inside, outside = (CliProject(each, critic._server) for each in (below, elsewhere))

    for target in ("critic", "other.py"):
        visited, words = [], ["skill", "step", target, "--step", "2"]
        at = inside
        while words:
            result = at.signoff(*words)
            assert result.returncode == 0, result.stderr
            visited.append(result.stdout.splitlines()[-1] if "last step" in result.stdout else "")
            commands = re.findall(r"^    (signoff .+)$", result.stdout, re.MULTILINE)
            for script in [each for each in commands if " script " in each]:
                assert "checked" in outside.signoff(*shlex.split(script)[1:]).stdout
            steps = [each for each in commands if " script " not in each]
            words = shlex.split(steps[0])[1:] if steps else []
            words = [word.split("|")[-1].strip("<>") for word in words]
            at = outside
        assert visited[-1] == "This was the last step. There is no next command."
        assert len(visited) == 4


def test_an_ordinary_step_shows_its_instructions_and_the_next_command(critic: CliProject) -> None:
    """That is all an agent needs to go on."""
    step = shown(critic, "--step", "1", "--topic", "two words")
    text = critic.signoff("skill", "step", "critic", "--step", "1", "--topic", "two words").stdout
    pinned = f"{step['next_command']} --project-dir {critic.folder}"

    assert list(step) == FIELDS
    assert step == {
        "workflow": "critic",
        "step": 1,
        "total_steps": 4,
        "step_id": "plan",
        "title": "Plan",
        "actions": ["Plan the review.", "List the claims."],
        "next_command": "signoff skill step critic --step 2 --topic 'two words'",
        "next_commands": {},
    }
    assert text == (
        "# critic, step 1 of 4: Plan\n\nPlan the review.\n\nList the claims.\n\n"
        f"When this step is done, run:\n\n    {pinned}\n"
    )


def test_a_dispatched_step_says_what_to_launch_and_what_follows_each_verdict(
    critic: CliProject,
) -> None:
    """The agent that follows the skill must not review its own work."""
    step = shown(critic, "--step", "3", "--topic", "x")
    text = critic.signoff("skill", "step", "critic", "--step", "3", "--topic", "x").stdout

    assert step["next_command"] is None
    assert step["next_commands"] == {
        "ok": "signoff skill step critic --step 4 --topic x --verdict '<verdict>'",
        "fail": "signoff skill step critic --step 2 --topic x",
    }
    script = f"signoff skill script --project-dir {critic.folder} checks.review"
    for part in ("quality-reviewer", script, '"why": "x"', *step["next_commands"].values()):
        assert part in text


SEED = """
from signoff.skills import Outcome, StepContext, StepDef, Workflow

MAX_ITERATIONS = 4


def step_planning(ctx: StepContext) -> tuple[Outcome, dict]:
    mode = ctx.workflow_params.get("mode", "full")
    if mode == "quick":
        return Outcome.SKIP, {}
    return Outcome.OK, {}


def step_investigate(ctx: StepContext) -> tuple[Outcome, dict]:
    iteration = ctx.step_state.get("iteration", 1)
    confidence = ctx.workflow_params.get("confidence", "exploring")

    if confidence == "high":
        return Outcome.OK, {"confidence": confidence}
    elif iteration >= MAX_ITERATIONS:
        return Outcome.OK, {"confidence": "capped"}
    else:
        return Outcome.ITERATE, {"iteration": iteration + 1}


def helped(ctx):
    params = ctx.workflow_params
    return Outcome.OK, {"tone": params["tone"], "style": style_of(ctx)}


def style_of(ctx):
    return ctx.workflow_params.get("style")


WORKFLOW = Workflow(
    "seed",
    StepDef(id="planning", title="Plan", actions=["Plan it."], handler=step_planning, next={
        Outcome.OK: "investigate",      # full mode
        Outcome.SKIP: "formulate",      # quick mode
    }),
    StepDef(id="investigate", title="Look", actions=["Look."], handler=step_investigate,
            next={
                Outcome.OK: "formulate",       # exit loop
                Outcome.ITERATE: "investigate"  # continue loop
            }),
    StepDef(id="formulate", title="Formulate", actions=["Write it."], handler=helped,
            next={Outcome.OK: None}),
)
"""


def test_parameters_that_handlers_only_read_are_accepted_and_asked_for(project: CliProject) -> None:
    """Seed 001 reads `mode` and `confidence` without declaring them (its patterns 2 and 3)."""
    project.write(".signoff/skills/seed.py", SEED)
    rows = {
        ("--step", "1", "--mode", "quick"): "--step 3 --mode quick",
        ("--step", "1", "--mode", "full"): "--step 2 --mode full",
        ("--step", "2"): "--step 2 --iteration 2 --confidence '<confidence>'",
        ("--step", "2", "--iteration", "2", "--confidence", "high"): "--step 3 --confidence high",
    }
    for given, following in rows.items():
        step = project.json("skill", "step", "seed", *given)
        assert unpinned(project, step)["next_command"].partition(" seed ")[2] == following, given

    refused = project.signoff("skill", "step", "seed", "--step", "3", "--style", "dry")
    options = {each["option"] for each in project.json("skill", "show", "seed")["params"]}

    assert options == {"--mode", "--confidence", "--tone"}
    assert "list it in the inputs= of the Workflow" in refused.stderr
    assert "No such option '--style'" in refused.stderr


def test_a_run_asks_for_what_a_repeated_step_reads_and_keeps_what_it_was_started_with(
    project: CliProject,
) -> None:
    """Both ways to follow a skill decide alike."""
    project.write(".signoff/skills/seed.py", SEED)
    started = project.signoff("run", "seed", "--pull", "--name", "one", "-i", "mode=quick")
    skipped = project.json("submit", "one", "--result", "planned")
    project.signoff("run", "seed", "--pull", "--name", "two")
    (second,) = project.json("submit", "two", "--result", "planned")["work"]
    steps = []
    for confidence in ("low", "high"):
        result = json.dumps({"result": "seen", "confidence": confidence})
        steps.append(project.json("submit", "two", "--result", result)["step"])
    unknown = project.signoff("run", "seed", "-i", "style=dry")

    assert started.returncode == 10, started.stderr
    assert skipped["step"] == "formulate"
    assert second["form"] == {"result": "<result>", "confidence": "<confidence>"}
    assert steps == ["investigate", "formulate"]
    assert unknown.returncode == 2
    assert "list it in the inputs= of the Workflow" in unknown.stderr


def test_a_worker_outside_of_the_project_submits_values_apart_from_a_long_result(
    project: CliProject,
) -> None:
    """Nobody has to write a page of text as JSON, in quotes, on a command line."""
    project.write(".signoff/skills/seed.py", SEED)
    outside = CliProject(project.folder / "home", project._server)
    outside.folder.mkdir()
    outside.write("long.md", 'It "works".\n')
    printed = project.signoff("run", "seed", "--pull", "--name", "one").stdout
    command = re.findall(r"^  signoff (submit .+--result .+)$", printed, re.MULTILINE)[0]
    to_text = outside.signoff(*shlex.split(command)[1:], "--set", "tone=dry")
    done = outside.signoff(*[word.strip("<>") for word in shlex.split(command)])
    submit = ["submit", "one", "--project-dir", str(project.folder), "--file", "long.md"]
    rows = {
        ("--set", "mood=x"): "unknown value 'mood'",
        ("--set", "confidence"): "is not NAME=VALUE",
        ("--set", "confidence=<confidence>"): "placeholder",
        ("--failure", "no", "--set", "confidence=high"): "give one of",
    }
    for given, words in rows.items():
        refused = outside.signoff(*submit, *given)
        assert (refused.returncode, words in refused.stderr) == (2, True), (given, refused.stderr)
    again = outside.signoff(*submit, "--set", "confidence=low")
    last = outside.signoff(*submit, "--set", "confidence=high", "--json")

    assert done.returncode == 0, done.stderr
    assert to_text.returncode == 2
    assert "investigate" in again.stdout
    assert json.loads(last.stdout)["step"] == "formulate"
    (work,) = json.loads(last.stdout)["work"]
    assert json.dumps({"result": 'It "works".\n'})[1:-1] in work["prompt"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("critic --step 5", "no step 5; its steps are 1 to 4"),
        ("critic --step one", "'one' is not a valid integer"),
        ("critic", "--step"),
        ("critc --step 1", "unknown skill 'critc'; valid names: critic"),
        ("critic --step 1 --mode slow", "full, quick"),
        ("critic --step 2 --sure <exploring|low|medium|high|certain>", "placeholder"),
        ("critic --step 4 --verdict <verdict>", "placeholder"),
        ("critic --step 2 --iteration 4", "from 1 to 3"),
        ("critic --step 1 --speed 3", "No such option '--speed'; 'critic' has these options: --"),
        ("critic --step 4", "step 4 of 'critic' needs --verdict '<verdict>'"),
        ("nowhere.py --step 1", "unknown file"),
        ("nowhere:WORKFLOW --step 1", "No module named 'nowhere'"),
    ],
)
def test_a_wrong_command_is_one_line_and_no_instruction(
    critic: CliProject, options: str, words: str
) -> None:
    """An agent must not take the output of a failed command for a step."""
    result = critic.signoff("skill", "step", *options.split())

    own = [line for line in result.stderr.splitlines() if not line.startswith("imported ")]
    assert (result.returncode, result.stdout, len(own)) == (2, "", 1)
    assert words in own[0]


ONE_STEP = """
from signoff.skills import AgentRole, Dispatch, Outcome, StepDef, Workflow
from signoff.skills.qr import QRGate
from signoff.skills.state import STATE_DIR

def work(ctx):
    ctx.workflow_params["mode"] = "quick"
    return Outcome.OK, {}

def judge(ctx):
    WORKFLOW.steps["only"].next[Outcome.OK] = "only"
    return Outcome.OK, {}

WORKFLOW = Workflow("one", StepDef("only", STEP, next={Outcome.OK: None}), inputs=[STATE_DIR])
"""


def test_what_would_pass_unseen_is_refused_both_ways(project: CliProject) -> None:
    """A verdict without a way on, a step that no one is given, a workflow that changes itself."""
    dispatch, read_only = "Dispatch(AgentRole.ARCHITECT)", "are read-only"
    rows = {
        f"'', [], {dispatch}": "can end with Outcome.FAIL, which leads nowhere",
        "'Judge', ['Judge.'], QRGate(phase='plan-design')": "can end with Outcome.FAIL",
        "'Publish the release'": "has a title, but no instructions",
        "'Publish', [' ']": "has a title, but no instructions",
        "'', [], work": read_only,
        "'', [], judge": read_only,
    }
    for number, (step, words) in enumerate(rows.items()):
        project.write("one.py", ONE_STEP.replace("STEP,", f"{step},", 1))
        by_step = project.signoff("skill", "step", "one.py", "--step", "1")
        by_run = project.signoff("run", "one.py", "--name", f"run{number}")

        assert (by_step.returncode, by_run.returncode) in ((2, 2), (1, 1)), step
        assert words in by_step.stderr, step
        assert words in by_run.stdout + by_run.stderr, step


def test_a_module_runs_as_a_program_without_being_imported_twice(project: CliProject) -> None:
    """Everything in it would exist twice otherwise."""
    project.write("team/__init__.py", "")
    project.write("team/critic.py", SKILL)

    done = subprocess.run(
        [sys.executable, "-m", "team.critic", "--step", "1"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True,
    )  # fmt: skip
    first = subprocess.run(
        [sys.executable, "team/critic.py"],
        cwd=project.folder, env=project.environment, capture_output=True, text=True,
    )  # fmt: skip
    command = done.stdout.splitlines()[-1].strip()

    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("imported as") == 1
    assert (first.stdout + first.stderr).count("imported as") == 1
    assert "# critic, step 1 of 4: Plan" in first.stdout
    pinned = f"--project-dir {project.folder}"
    assert command == f"signoff skill step team.critic:WORKFLOW --step 2 {pinned}"
    assert project.signoff(*shlex.split(command)[1:]).stdout.startswith("# critic, step 2 of 4")


def test_a_skill_is_run_resumed_and_drawn_by_its_name(critic: CliProject) -> None:
    """A skill is a workflow like any other; its worker reports what later steps require."""
    for number, target in enumerate(("critic", "skill:critic")):
        name = f"run{number}"
        started = critic.signoff("run", target, "--pull", "--name", name)
        assert started.returncode == 10, started.stderr
        assert critic.signoff("resume", name).returncode == 10
        assert critic.json("next", name)["work"]
        assert critic.signoff("graph", target).stdout.count("critic: 4 steps") == 1
