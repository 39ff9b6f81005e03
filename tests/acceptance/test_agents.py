"""Agents by settings alone, on the real command line."""

import pytest

from tests.acceptance.cli_project import CliProject

FLOW = """
from signoff import Outcome, StepDef, Workflow

SCHEMA = {
    "type": "object",
    "properties": {"overall": {"enum": ["PASS", "FAIL"]}},
    "required": ["overall"],
}


async def draft(ctx):
    return Outcome.OK, {"text": (await ctx.ask("writer", "Write.")).text}


async def review(ctx):
    verdict = await ctx.ask("critic", "Review.", schema=SCHEMA, artifact=ctx.step_state["text"])
    await ctx.write("final/verdict.txt", verdict.value["overall"])
    return Outcome.OK, {}


WORKFLOW = Workflow(
    "review",
    StepDef("draft", handler=draft, next={Outcome.OK: "review"}),
    StepDef("review", handler=review, next={Outcome.OK: None}),
)
"""

SETTINGS = """
agents:
  writer: {kind: scripted, file: script.yaml}
  critic: {kind: check, argv: [grep, -q, draft], constraint: words}
"""


@pytest.fixture
def project(project: CliProject) -> CliProject:
    project.write("flow.py", FLOW)
    project.signoff("init")
    return project


def judge_reply(project: CliProject) -> str:
    return (project.folder / ".signoff/runs/one/final/verdict.txt").read_text()


def test_a_whole_review_needs_neither_a_model_nor_python(project: CliProject) -> None:
    """The first thing somebody tries, and what runs in a pipeline without keys."""
    project.write(".signoff/config.yaml", SETTINGS)
    project.write("script.yaml", "rules:\n- {step: draft, agent: writer, text: A draft.}\n")

    done = project.signoff("run", "flow.py", "--name", "one")

    assert done.returncode == 0, done.stdout + done.stderr
    assert judge_reply(project) == "PASS"


def test_a_run_whose_agent_fails_goes_on_by_hand(project: CliProject) -> None:
    """The quota is used up, the deadline is not: a chat window will do."""
    project.write(".signoff/config.yaml", SETTINGS)
    project.write("script.yaml", "rules:\n- fault: {quota: in 5 h}\n")

    parked = project.signoff("run", "flow.py", "--name", "one")
    waiting = project.signoff(
        "resume", "one", "--agent", "writer=manual", "--agent", "critic=manual"
    )
    project.signoff("answer", "one", "By hand.", "--resume")
    refused = project.signoff("answer", "one", "It passes.")
    done = project.signoff("answer", "one", '{"overall": "FAIL"}', "--resume")

    assert (parked.returncode, waiting.returncode) == (75, 10), waiting.stderr
    assert refused.returncode == 2
    assert "JSON" in refused.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert judge_reply(project) == "FAIL"


def test_a_prompt_for_a_person_tells_the_form_of_the_answer(project: CliProject) -> None:
    """Whoever pastes it into a chat window pastes the schema with it."""
    project.write(".signoff/config.yaml", "roles: {writer: manual, critic: manual}\n")

    project.signoff("run", "flow.py", "--name", "one")
    project.signoff("answer", "one", "A draft.", "--resume")

    prompt = (project.folder / ".signoff/runs/one/hitl/2-prompt.md").read_text()
    assert prompt.startswith("Review.")
    assert '"overall"' in prompt


def test_an_answer_file_that_does_not_fit_stays_and_is_told_about(project: CliProject) -> None:
    """Somebody's work must not vanish because a brace is missing."""
    project.write(".signoff/config.yaml", "roles: {writer: manual, critic: manual}\n")
    project.signoff("run", "flow.py", "--name", "one")
    project.signoff("answer", "one", "A draft.", "--resume")
    file = project.write(".signoff/runs/one/hitl/2-response.md", '{"overall": "MAYBE"}')

    refused = project.signoff("resume", "one")
    kept = file.exists()
    file.write_text('```json\n{"overall": "PASS"}\n```\n')
    done = project.signoff("resume", "one")

    assert (refused.returncode, kept) == (10, True)
    assert "MAYBE" in refused.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert judge_reply(project) == "PASS"


def test_an_agent_nobody_knows_is_answered_with_the_right_names(project: CliProject) -> None:
    """Typing errors happen when something else is on fire."""
    project.write(".signoff/config.yaml", SETTINGS)
    project.write("script.yaml", "rules:\n- fault: quota\n")
    project.signoff("run", "flow.py", "--name", "one")

    done = project.signoff("resume", "one", "--agent", "writer=manuel")

    assert done.returncode == 2
    assert "unknown agent 'manuel'; valid names: manual, writer, critic, claude" in done.stderr


def test_a_newcomer_is_told_what_to_do_in_three_lines(project: CliProject) -> None:
    """On a machine with none of the agents, the doctor is the first page of the manual."""
    done = project.signoff("doctor", PATH="/nowhere")

    _, _, advice = done.stdout.partition("no agent is ready; set up any one of these:\n")
    assert done.returncode == 0, done.stdout
    assert [line.strip()[:2] for line in advice.splitlines()[:3]] == ["1.", "2.", "3."]


def test_recorded_answers_replay_without_the_agent(project: CliProject) -> None:
    """A demonstration that works on a train."""
    project.write("script.yaml", "rules:\n- {text: A draft., times: 1}\n")
    for mode, name in (("record", "one"), ("replay", "two")):
        project.write(
            ".signoff/config.yaml",
            f"""
agents:
  real: {{kind: scripted, file: script.yaml}}
  writer: {{kind: cassette, agent: real, file: tape.yaml, mode: {mode}}}
  critic: {{kind: check, argv: [grep, -q, draft]}}
""",
        )
        done = project.signoff("run", "flow.py", "--name", name)
        project.write("script.yaml", "rules: []\n")

        assert done.returncode == 0, done.stdout + done.stderr

    assert "A draft." in (project.folder / "tape.yaml").read_text()
