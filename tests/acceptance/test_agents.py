"""Agents by settings alone, on the real command line."""

import json

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


def test_cached_tokens_are_shown_and_cost_their_own_price(project: CliProject) -> None:
    """Users want to see whether the cache works, and a bill that is right."""
    price = "{in: 10, out: 100, cached: 1}"
    project.write(".signoff/config.yaml", SETTINGS.replace("yaml}", f"yaml, price: {price}}}"))
    usage = "{tokens_in: 12300, tokens_cached: 9800, tokens_out: 800, usd: null}"
    project.write("script.yaml", f"rules:\n- {{step: draft, text: A draft., usage: {usage}}}\n")

    project.signoff("run", "flow.py", "--name", "one")
    text = project.signoff("show", "one").stdout
    shown = json.loads(project.signoff("show", "one", "--json").stdout)

    assert "12,300 in (9,800 cached) · 800 out" in text
    assert "13,100 tokens (9,800 cached)" in text
    (entry,) = [each for each in shown["ledger"] if each["agent"] == "writer"]
    assert (entry["tokens_in"], entry["tokens_cached"], entry["tokens_out"]) == (12300, 9800, 800)
    assert entry["usd"] == pytest.approx((2500 * 10 + 9800 * 1 + 800 * 100) / 1_000_000)


def test_a_run_whose_agent_fails_can_be_continued_by_hand(project: CliProject) -> None:
    """If the quota is used up, the user can answer from a chat window."""
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


def test_an_invalid_answer_file_is_kept_and_reported(project: CliProject) -> None:
    """An answer must not be lost because a brace is missing."""
    project.write(".signoff/config.yaml", "roles: {writer: manual, critic: manual}\n")
    project.signoff("run", "flow.py", "--name", "one")
    project.signoff("answer", "one", "A draft.", "--resume")
    prompt = (project.folder / ".signoff/runs/one/hitl/2-prompt.md").read_text()
    # The user pastes the prompt into a chat window, and the schema of the answer with it.
    assert prompt.startswith("Review.")
    assert '"overall"' in prompt
    file = project.write(".signoff/runs/one/hitl/2-response.md", '{"overall": "MAYBE"}')

    refused = project.signoff("resume", "one")
    still_there = file.exists()
    file.write_text('```json\n{"overall": "PASS"}\n```\n')
    done = project.signoff("resume", "one")

    assert (refused.returncode, still_there) == (10, True)
    assert "MAYBE" in refused.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert judge_reply(project) == "PASS"


def test_doctor_prints_three_lines_of_setup_help_if_there_is_no_agent(project: CliProject) -> None:
    """`signoff doctor` is the first thing to run on a machine without agents."""
    done = project.signoff("doctor", PATH="/nowhere")

    _, _, advice = done.stdout.partition(
        "no agent that can review is ready; set up any one of these:\n"
    )
    assert done.returncode == 0, done.stdout
    assert [line.strip()[:2] for line in advice.splitlines()[:3]] == ["1.", "2.", "3."]
    assert "small model" not in advice, "it cannot review"


def test_a_command_is_found_in_the_project_as_a_check_is(
    project: CliProject, subtests: pytest.Subtests
) -> None:
    """It works in a folder of its own, so a path of the settings named nothing there."""
    tool = project.write("tools/agent.sh", "#!/bin/sh\ncat > /dev/null\necho a draft\n")
    tool.chmod(0o755)
    critic = "{kind: check, argv: [grep, -q, draft], constraint: words}"
    for number, argv in enumerate(
        (
            "[tools/agent.sh]",
            "[sh, tools/agent.sh]",
            "[sh, '{project_root}/tools/agent.sh']",
            "['{project_root}/tools/agent.sh']",
        )
    ):
        with subtests.test(argv=argv):
            settings = f"agents:\n  writer: {{kind: command, argv: {argv}}}\n  critic: {critic}\n"
            project.write(".signoff/config.yaml", settings)

            done = project.signoff("run", "flow.py", "--name", f"r{number}")

            assert done.returncode == 0, done.stderr
            verdict = project.folder / f".signoff/runs/r{number}/final/verdict.txt"
            assert verdict.read_text() == "PASS"


def test_an_inline_constraint_names_its_agents_and_its_severity(project: CliProject) -> None:
    """A check for one rule needed a file of its own."""
    project.write("note.md", "A draft.\n")
    project.write(
        ".signoff/config.yaml", "agents:\n  words: {kind: check, argv: [grep, -q, sea]}\n"
    )
    project.write(
        "flow.yaml",
        "name: note\nartifact: {paths: [note.md]}\nconstraints:\n  inline:\n"
        "    sea: {summary: It is about the sea., agents: [words], severity: medium}\n"
        "workflow:\n  - {step: critique}\n  - {step: adjudicate, agent: policy}\n"
        "max_iterations: 1\n",
    )

    planned = project.signoff("run", "flow.yaml", "--dry-run")
    done = project.signoff("run", "flow.yaml", "--name", "one")

    assert planned.returncode == 0, planned.stderr
    assert "words" in planned.stdout
    assert done.returncode not in (0, 2), done.stderr
    (finding,) = project.json("findings", "one")
    assert finding["constraint"] == "sea"
