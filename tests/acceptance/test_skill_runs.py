"""Every skill of the library from its first step to its last, stateless and as a run."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.api import run_async
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentRefused
from signoff.core.outcome import Outcome, Status
from signoff.core.step import WORKER, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.result import RunResult
from signoff.runtime.sub_agents import AgentRole
from signoff.skills.discovery import discover_workflows
from signoff.store.sqlite import MemoryStore
from signoff.testing import ScriptedAgent
from tests.acceptance.cli_project import CliProject
from tests.acceptance.flow_project import DRAFT, FINAL, FlowProject
from tests.acceptance.forked_program import ForkedProgram
from tests.acceptance.stand_in_agent import answer, follow, title_of, titles_of

USAGE, WAITING = 2, 10
SKILLS = discover_workflows()
OVER = "What you reported ends the rounds of this step: do not do another one."
READ = 2.4
"""How much an agent reads at most on its way through a skill, in lengths of its instructions."""

every_skill = pytest.mark.parametrize("skill", SKILLS.values(), ids=SKILLS)


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_server: ForkedProgram
) -> Iterator[CliProject]:
    """A project that the test's own process is in."""
    with closing(CliProject(tmp_path, command_server)) as project:
        project.enter(monkeypatch)
        project.call("init")
        yield project


def stateless(skill: str, project: CliProject) -> list[str]:
    """Returns what an agent is shown that follows a skill by its step commands."""
    return follow(f"signoff skill step {skill} --step 1", lambda words: printed(project, words))


def pulled(skill: str, project: CliProject) -> list[str]:
    """Returns what an agent is shown that does the work of a run."""
    command = f"signoff run {skill} --pull --name one"
    return follow(command, lambda words: printed(project, words))


def printed(project: CliProject, words: Sequence[str]) -> str:
    result = project.call(*words)
    assert result.code == (WAITING if words[0] == "run" else 0), result
    return result.out


def main_path(skill: Workflow) -> list[StepDef]:
    """Returns the steps from the first to the last if everything succeeds."""
    path = [skill[skill.entry_point]]
    while isinstance(to := skill.edges.need(path[-1].id, Outcome.OK).to, str):
        path.append(skill[to])
    return path


def problems_of(skill: Workflow, pages: Sequence[str]) -> list[str]:
    """Returns which steps were not shown in their order, or not exactly as they are written."""
    expected = [step.title for step in main_path(skill)]
    found = titles_of(pages)
    problems = [] if found == expected else [f"{found} is not {expected}"]
    by_title = {step.title: step for step in skill.steps.values()}
    for page in pages:
        title = title_of(page)
        if title is None:
            continue
        own = by_title[title]
        if OVER in page:
            # A round is reported at the step itself, which needs no reading then.
            problems += [f"{title!r} is shown again" for _ in own.actions if own.actions[0] in page]
            continue
        if f"{title}\n\n" + "\n\n".join(own.actions) not in page:
            problems.append(f"the instructions of {title!r} are not complete")
        problems += [
            f"the page of {title!r} shows {other.title!r}"
            for other in skill.steps.values()
            if other is not own and other.actions[0] in page
        ]
    return problems


@every_skill
def test_an_agent_that_only_follows_commands_is_given_every_step_either_way(
    here: CliProject, skill: Workflow
) -> None:
    """Both ways show the same instructions, one step at a time, and end at the last step."""
    by_command, by_run = stateless(skill.name, here), pulled(skill.name, here)

    assert problems_of(skill, by_command) == []
    assert problems_of(skill, by_run) == []
    assert titles_of(by_command) == titles_of(by_run)
    assert "This was the last step." in by_command[-1]
    assert "no open work; run one is completed" in by_run[-1]


@every_skill
def test_an_agent_reads_little_besides_instructions_either_way(
    here: CliProject, skill: Workflow
) -> None:
    """It pays for what it reads: its own results are not repeated, nor a step that is over."""
    result = "Found nothing that contradicts it. " * 40
    shown: list[str] = []

    def run(words: Sequence[str]) -> str:
        if "--result" in words:
            given = words[at := [*words].index("--result") + 1]
            text = result if given == "result" else given.replace(': "result"', f': "{result}"')
            words = [*words[:at], text, *words[at + 1 :]]
        page = printed(here, words)
        shown.append(page)
        return page

    follow(f"signoff run {skill.name} --pull --name one", run)
    instructions = sum(len("\n".join(step.actions)) for step in main_path(skill))
    by_run, by_command = len("".join(shown)), len("".join(stateless(skill.name, here)))

    assert by_run < READ * instructions
    assert by_command < READ * instructions
    assert result not in "".join(shown)


@pytest.mark.parametrize("number", [2, 5, 7])
def test_the_agent_of_these_tests_notices_a_step_that_is_left_out(
    here: CliProject, number: int
) -> None:
    """Otherwise the test above would show nothing."""
    skill = SKILLS["decision-critic"]

    def run(words: Sequence[str]) -> str:
        skipped = [str(number + 1) if word == str(number) else word for word in words]
        return printed(here, skipped)

    pages = follow("signoff skill step decision-critic --step 1", run)

    assert "This was the last step." in pages[-1]
    assert len(problems_of(skill, pages)) == 1
    assert problems_of(skill, [page.replace("Do:", "Try:") for page in pages])[1:] != []


def test_a_run_cannot_be_led_past_a_step(here: CliProject) -> None:
    """The position is the engine's, whatever the agent submits."""
    started = here.call("run", "decision-critic", "--pull", "--name", "one")
    first = started.out.splitlines()[0]

    assert here.call("submit", "one", "--item", "2", "--result", "done").code != 0
    assert here.call("submit", "one", "--result", "<result>").code == USAGE
    assert here.call("resume", "one").code == WAITING
    assert title_of(here.call("next", "one").out) == title_of(started.out)
    assert first == "--- work #1 of run one: structure ---"


@every_skill
async def test_an_agent_of_the_settings_is_given_every_step(
    here: CliProject, skill: Workflow
) -> None:
    """A skill that completes was followed from its first step to its last."""
    agent, result = await run_with(skill, here)

    assert result.status is Status.COMPLETED, result.reason
    assert problems_of(skill, agent.prompts) == []


@every_skill
async def test_a_skill_completes_only_if_every_step_was_followed(
    here: CliProject, skill: Workflow
) -> None:
    """A step that no agent follows ends the run there, and the steps after it are not given."""
    path = main_path(skill)
    for number, step in enumerate(path):
        agent, result = await run_with(skill, here, refused=step.title)

        # A human decides about one of several sub-agents that fails.
        assert result.status in (Status.FAILED, Status.WAITING), step.id
        assert result.step == step.id
        assert titles_of(agent.prompts) == [each.title for each in path[: number + 1]]


async def run_with(
    skill: Workflow, project: CliProject, refused: str = ""
) -> tuple[ScriptedAgent, RunResult]:
    """Runs a skill with one agent in every role, which refuses the step of one title."""

    def reply(request: AgentRequest) -> Any:
        if title_of(request.prompt) == refused:
            raise AgentRefused("no")
        return answer(request, lambda words: printed(project, words))

    agent = ScriptedAgent().on("", reply)
    agents = dict.fromkeys([WORKER, *map(str, AgentRole)], agent)
    return agent, await run_async(skill, {}, store=MemoryStore(), agents=agents)


EDITING = """
from signoff.skills import Outcome, StepDef, Workflow

WORKFLOW = Workflow(
    "editing",
    StepDef("look", "Look", ["Find the mistake."], next={Outcome.OK: "fix"}),
    StepDef("fix", "Fix", ["Correct it."], edits=True, next={Outcome.OK: None}),
)
"""


def test_a_program_edits_the_project_only_in_steps_that_say_so(flow_project: FlowProject) -> None:
    """A user who runs `refactor` expects changed files, one who runs an analysis does not."""
    flow_project.write(".signoff/skills/editing.py", EDITING)
    file = flow_project.write("artifact.md", DRAFT)
    flow_project.script(
        {"edits": False, "text": "It says see.", "contains": "# Look"},
        {"edits": True, "text": "Done.", "contains": "# Fix", "edit": [["see", "sea"]]},
    )

    done = flow_project.call("run", "editing", "--name", "one")

    assert done.code == 0, done.err
    assert file.read_text() == FINAL
    assert flow_project.call_fields("edits") == [False, True]


REVIEWED = """
from signoff.skills import AgentRole, Dispatch, Outcome, StepDef, Workflow

WORKFLOW = Workflow(
    "reviewed",
    StepDef("check", "Check", ["Judge it."], Dispatch(AgentRole.ARCHITECT),
            {Outcome.OK: None, Outcome.FAIL: "check"}),
)
"""


def test_the_default_agent_plays_every_role_that_has_no_agent(flow_project: FlowProject) -> None:
    """A skill of the library runs in a new project, where no role is assigned."""
    flow_project.write(".signoff/skills/reviewed.py", REVIEWED)
    flow_project.script({"text": '{"status": "pass", "notes": "fine"}'})

    done = flow_project.call("run", "reviewed", "--name", "one")

    assert done.code == 0, done.err
    assert flow_project.call_fields("agent") == ["claude"]
