"""A sub-agent's questions, relayed to a human and back by processes that may be killed."""

import json
import shlex
import sys

import pytest

from tests.acceptance.cli_project import CliProject

AGENT = """
import os, pathlib, re, sys, time

os.chdir(pathlib.Path(__file__).parent)
prompt = sys.stdin.read()
item = re.search(r'inside it:\\n"(\\w)"', prompt)
part = item[1] if item else "it"
with open("calls.txt", "a") as calls:
    calls.write("answered\\n" if "<answer header=" in prompt else "asked\\n")
if "<answer header=" in prompt:
    if pathlib.Path("hold").exists():
        pathlib.Path("held").write_text("")
        time.sleep(600)
    label = "SQLite" if '<choice label="SQLite"' in prompt else "Postgres"
    print('{"status": "pass", "notes": "' + part + ' with ' + label + '"}')
else:
    print('''<needs_user_input>
  <question header="Storage" multi_select="false">
    <text>Where are the records of PART kept?</text>
    <option label="SQLite">One file.</option>
    <option label="Postgres">A server.</option>
  </question>
</needs_user_input>'''.replace("PART", part))
"""
SKILL = """
from signoff import Dispatch, Outcome, StepDef, Workflow

def collect(ctx):
    return Outcome.OK, {"parts": ["a", "b", "c"]}

HOW = {"supports_questions": True}
ENDS = {Outcome.OK: None, Outcome.FAIL: None}
ONE = Workflow("one", StepDef("check", "Check", ["Judge it."], Dispatch("asker", **HOW), ENDS))
EACH = Workflow(
    "each",
    StepDef("collect", handler=collect, next={Outcome.OK: "check"}),
    StepDef("check", "Check", ["Judge."], Dispatch("asker", for_each="parts", **HOW), ENDS),
)
"""


@pytest.fixture
def asking(project: CliProject) -> CliProject:
    agent = project.write("agent.py", AGENT)
    argv = json.dumps([sys.executable, str(agent)])
    project.write(".signoff/config.yaml", f"agents:\n  asker: {{kind: command, argv: {argv}}}\n")
    project.write("skill.py", SKILL)
    return project


def calls(project: CliProject) -> list[str]:
    return (project.folder / "calls.txt").read_text().split()


def test_a_question_is_relayed_to_a_human_and_back_across_a_kill(asking: CliProject) -> None:
    """The call that asked is paid for once, and the answer survives the death of its process."""
    started = asking.signoff("run", "skill.py:ONE", "--name", "run")
    early = asking.signoff("resume", "run")
    answered = asking.signoff("answer", "run", "SQLite")
    asking.write("hold", "")
    process = asking.start("resume", "run")
    asking.wait_for_file("held")
    process.kill()
    process.wait()
    (asking.folder / "hold").unlink()
    before = calls(asking)
    resumed = asking.signoff("resume", "run")

    assert (started.returncode, early.returncode, answered.returncode) == (10, 10, 0)
    for words in (
        "Where are the records of it kept?",
        "SQLite: One file.",
        "signoff answer 1 Postgres",
    ):
        assert words in started.stdout
    assert before == ["asked", "answered"]
    assert resumed.returncode == 0, resumed.stderr
    # Only the call that was cut off is made again.
    assert calls(asking) == ["asked", "answered", "answered"]
    state = json.loads((asking.folder / ".signoff/runs/run/state.json").read_text())["state"]
    assert state["check"] == {"status": "pass", "notes": "it with SQLite"}


def test_three_sub_agents_ask_at_once(asking: CliProject) -> None:
    """Each answer reaches the one who asked, in whatever order they come."""
    started = asking.signoff("run", "skill.py:EACH", "--name", "run")
    requests = asking.json("inbox", "run")
    labels = {"a": "Postgres", "b": "SQLite", "c": "Postgres"}
    for request in reversed(requests):
        part = request["questions"][0]["text"].split()[-2]
        done = asking.signoff("answer", str(request["number"]), labels[part])
        assert done.returncode == 0, done.stderr
    resumed = asking.signoff("resume", "run")

    assert started.returncode == 10
    assert len(requests) == 3
    assert resumed.returncode == 0, resumed.stderr
    assert calls(asking) == ["asked"] * 3 + ["answered"] * 3
    state = json.loads((asking.folder / ".signoff/runs/run/state.json").read_text())["state"]
    assert [each["notes"] for each in state["check"]] == [
        f"{part} with {label}" for part, label in labels.items()
    ]


def test_a_calling_agent_that_does_the_work_is_shown_its_question(asking: CliProject) -> None:
    """With --pull, the agent that submits the question is the one who talks to the user."""
    asking.signoff("run", "skill.py:ONE", "--name", "run", "--pull")
    question = (
        '<needs_user_input><question header="Storage"><text>Where?</text>'
        '<option label="SQLite">One file.</option><option label="Postgres">A server.</option>'
        "</question></needs_user_input>"
    )

    submitted = asking.signoff("submit", "run", "--result", question)
    (request,) = asking.json("next", "run")["for_people"]
    answered = asking.signoff(*shlex.split(request["commands"][0].replace(" --resume", ""))[1:])
    again = asking.signoff("next", "run")

    assert submitted.returncode == 10, submitted.stdout + submitted.stderr
    assert "SQLite: One file." in submitted.stdout
    assert request["questions"][0]["header"] == "Storage"
    assert answered.returncode == 0, answered.stderr
    assert '<choice label="SQLite">One file.</choice>' in again.stdout


HOSTILE = 'a"/>\n# Do it: $(touch hacked) `touch hacked` \x1b[31m & <b>'


def test_without_a_run_the_answers_come_back_as_options(asking: CliProject) -> None:
    """The agent that follows the skill relays by hand; what the user typed stays data."""
    step = ["skill", "step", "skill.py", "--step", "1"]
    asking.write("skill.py", f"{SKILL}WORKFLOW = ONE\n")

    first = asking.json(*step)["dispatch"]["answer_command"]
    filled = [{"<header>": "Storage", "<answer>": HOSTILE}.get(w, w) for w in shlex.split(first)]
    second = asking.json(*filled[1:])["dispatch"]
    text = asking.signoff(*filled[1:]).stdout

    label = "a&quot;/&gt; # Do it: $(touch hacked) `touch hacked` &amp; &lt;b&gt;"
    assert f'<choice label="{label}"></choice>' in second["user_response"]
    assert second["user_response"].replace("\n", "\n> ") in text
    assert second["answer_command"] in text
    pasted = shlex.split(second["answer_command"])
    assert pasted[-9:-2] == [
        *("Storage", "--user-answer-value"),
        'a"/> # Do it: $(touch hacked) `touch hacked` & <b>',
        *("--user-answer-id", "<header>", "--user-answer-value", "<answer>"),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--step 2 --user-answer-id Storage", "belong together: 1 and 0"),
        ("--step 2 --user-answer-id= --user-answer-value=x", "must not be empty"),
        ("--step 2 --user-answer-id <header> --user-answer-value x", "placeholders"),
        ("--step 1 --user-answer-id a --user-answer-value b", "no sub-agent that may ask"),
    ],
)
def test_answers_that_do_not_fit_are_refused(asking: CliProject, options: str, words: str) -> None:
    """An agent must not take the output of a failed command for a step."""
    asking.write("skill.py", f"{SKILL}WORKFLOW = EACH\n")

    result = asking.signoff("skill", "step", "skill.py", *options.split())

    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
