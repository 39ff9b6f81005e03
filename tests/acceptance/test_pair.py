"""`signoff pair` on the real command line, with a server that speaks Ollama's protocol."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli_project import CliProject
from tests.agent_harness import Fault, Hang, Refusal
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.stubs.pair_server import MODEL, PairServer, script, served

TASK = "eco-friendly water bottles"
SLOGAN = ("pair", TASK, "--preset", "slogan")
HAPPY = (("Live Clean", "Too vague."), ("Save Our Seas", "SHIP IT!"))


@pytest.fixture(scope="module")
def shared_server() -> Iterator[PairServer]:
    with served() as server:
        yield server


@pytest.fixture
def server(shared_server: PairServer, project: CliProject) -> PairServer:
    shared_server.heard.clear()
    shared_server.answer, shared_server.listing = script(*HAPPY), None
    project.environment |= {"OLLAMA_BASE_URL": shared_server.url, "OLLAMA_MODEL_NAME": MODEL}
    return shared_server


def test_stdout_has_the_result_alone_and_stderr_each_turn(
    project: CliProject, server: PairServer
) -> None:
    """`slogan=$(signoff pair ...)` must get the slogan and nothing else."""
    done = project.signoff(*SLOGAN, "--name", "first")

    assert (done.returncode, done.stdout) == (0, "Save Our Seas\n")
    places = [done.stderr.index(text) for text in ("Live Clean", "Too vague.", "Save Our Seas")]
    assert places == sorted(places)
    assert "asks for changes" in done.stderr
    shown = project.json("show", "first")
    assert [turn["text"] for turn in shown["pair"]["turns"]] == ["Live Clean", "Save Our Seas"]
    assert shown["pair"]["final"] == "Save Our Seas"
    text = project.signoff("show", "first").stdout
    assert "feedback: Too vague." in text
    assert "REVIEWING" in text
    assert "turn 2 of 5: Save Our Seas" in project.signoff("logs", "first").stdout


@pytest.mark.parametrize(
    ("turns", "options", "code", "reason", "out"),
    [
        ([("a", "no"), ("b c", "no")], ["--max-turns", "2"], 11, "max_turns", "b c\n"),
        ([("a", "no"), ("b c", "no")], [], 13, "converged", "b c\n"),
        ([("a", "no"), (Refusal(Fault.NO_MODEL), "no")], [], 1, "error", ""),
    ],
)
def test_each_end_has_its_exit_code(
    project: CliProject,
    server: PairServer,
    turns: list[tuple[object, object]],
    options: list[str],
    code: int,
    reason: str,
    out: str,
) -> None:
    """Only 0 means that the text was approved."""
    server.answer = script(*turns)
    done = project.signoff(*SLOGAN, *options)
    server.answer = script(*turns)
    session = json.loads(project.signoff(*SLOGAN, *options, "--json").stdout)

    assert (done.returncode, done.stdout) == (code, out)
    assert (session["exit_code"], session["completion_reason"]) == (code, reason)
    assert session["turns"][0]["slogan"] == "a"


@pytest.mark.parametrize("argument", [["-"], []])
def test_the_task_can_be_piped_in(
    project: CliProject, server: PairServer, argument: list[str]
) -> None:
    """A long task does not fit on a command line."""
    done = project.signoff("pair", *argument, "--preset", "slogan", input_text=f"{TASK}\n")

    assert done.stdout == "Save Our Seas\n"
    assert server.asked[0]["messages"][-1]["content"] == f"Create a slogan for: {TASK}"


@pytest.mark.parametrize("client", [True, False])
def test_without_a_server_the_default_agent_writes(project: CliProject, *, client: bool) -> None:
    """The first command of the README works with any agent that is ready, without extras too."""
    project.write(".signoff/config.yaml", "agents: {claude: {kind: scripted, file: pen.yaml}}\n")
    replies = [{"text": "Save Our Seas", "times": 1}, {"text": "SHIP IT!"}]
    project.write("pen.yaml", json.dumps({"rules": replies}))

    project.write("missing/ollama.py", "raise ImportError('not installed')\n")

    done = project.signoff(
        *SLOGAN, **({} if client else {"PYTHONPATH": str(project.folder / "missing")})
    )

    assert (done.returncode, done.stdout) == (0, "Save Our Seas\n"), done.stderr
    assert "Ollama is not set up here; using the default agent, claude" in done.stderr


@pytest.mark.parametrize("preset", ["slogan", "text"])
def test_without_any_agent_nothing_is_started(project: CliProject, preset: str) -> None:
    """The message says what is missing and names the option, as that of `run` does."""
    done = project.signoff("pair", TASK, "--preset", preset, PATH=os.defpath)

    assert (done.returncode, done.stdout) == (2, "")
    assert "no agent can review yet" in done.stderr
    assert "--agent" in done.stderr
    assert not (project.folder / ".signoff").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--model", "nope"), "stub-large:latest, stub-small:1b"),
        (("--agent", "local"), "'local' is too small a model to review"),
        (("--no-reviewer",), "nothing would review the text"),
        (("--no-reviewer", "--reviewer", "claude"), "--no-reviewer and --reviewer exclude"),
    ],
)
def test_what_cannot_end_in_a_review_is_refused_before_anything_starts(
    project: CliProject, server: PairServer, options: tuple[str, ...], problem: str
) -> None:
    """The first line says what to do instead."""
    done = project.signoff(*SLOGAN, *options)

    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr.partition("\n")[0]
    assert not (project.folder / ".signoff").exists()


def test_the_only_model_of_a_server_is_used_unless_one_is_named(
    project: CliProject, server: PairServer
) -> None:
    """Hardly anybody has the model that a pair would ask for by default."""
    server.answer = script(("Live Clean", "SHIP IT!"))
    server.installed = ["only:1b"]
    try:
        done = project.signoff(*SLOGAN, OLLAMA_MODEL_NAME="")
        named = project.signoff(*SLOGAN, "--model", "nope")
    finally:
        del server.installed

    assert (done.returncode, done.stdout) == (0, "Live Clean\n"), done.stderr
    assert {body["model"] for body in server.asked} == {"only:1b"}
    assert named.returncode == 2
    assert "add --model only:1b" in named.stderr


def test_an_interrupted_pair_is_resumed_without_repeating_the_writer(
    project: CliProject, server: PairServer
) -> None:
    """Ctrl-c between the writer and the reviewer; also from another environment."""
    server.answer = script(("Save Our Seas", Hang("")))
    process = project.start(*SLOGAN, "--name", "first")
    wait_until(lambda: len(server.asked) == 2, "the reviewer's request")

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_SECONDS)
    server.answer = script(("never asked", "SHIP IT!"))
    del project.environment["OLLAMA_BASE_URL"], project.environment["OLLAMA_MODEL_NAME"]
    done = project.signoff("resume", "first")

    assert process.returncode == 130
    assert (done.returncode, done.stdout) == (0, "Save Our Seas\n")
    assert server.written == 1


def test_python_and_the_command_line_share_their_runs(
    project: CliProject, server: PairServer
) -> None:
    """Without a project, the call creates one; the command line then finds its run."""
    project.write(
        "slogan.py",
        "import asyncio\n"
        "from signoff.pair import run_slogan_generation\n"
        f"session = asyncio.run(run_slogan_generation({TASK!r}, max_turns=1))\n"
        "print(session.completion_reason, session.run)\n",
    )
    environment = {**project.environment, "PYTHONWARNINGS": "default"}

    done = subprocess.run(
        [sys.executable, "slogan.py"],
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert done.returncode == 0, done.stderr
    reason, run = done.stdout.split()
    assert reason == "max_turns"
    resumed = project.signoff("resume", run)
    assert (resumed.returncode, resumed.stdout) == (11, "Live Clean\n")
    assert "did not pass in 1 turn" in resumed.stderr
    assert project.json("show", run)["target"] == "pair:slogan"


def test_hostile_text_reaches_the_terminal_without_control_characters(
    project: CliProject, server: PairServer
) -> None:
    """A slogan must not be able to type on the user's terminal."""
    server.answer = script(("Live \x1b]0;owned\x07Clean", "SHIP IT!"))

    done = project.signoff(*SLOGAN, "-o", "slogan.txt")

    assert "\x1b" not in done.stdout + done.stderr
    assert (Path(project.folder) / "slogan.txt").read_text().startswith("Live ")


def test_checks_are_added_to_the_reviewer(project: CliProject, server: PairServer) -> None:
    """`--check` took the reviewer's place, so a text passed that no one had reviewed."""
    done = project.signoff(*SLOGAN, "--check", "words=8")

    assert (done.returncode, done.stdout) == (0, "Save Our Seas\n")
    assert "Too vague." in done.stderr


LEAD_INS = [
    "Sure! Here's a slogan:\n\nSave Our Seas",
    "Slogan: Save Our Seas",
    "**Tagline:** Save Our Seas",
    "**Final slogan: Save Our Seas**",
    'Here is an improved version:\n"**Save Our Seas**"\n\nIt is short.',
    "\u2018Save Our Seas\u2019",
]


@pytest.mark.parametrize("reply", LEAD_INS)
def test_an_introduction_is_not_the_slogan(
    project: CliProject, server: PairServer, reply: str
) -> None:
    """Small models introduce what they write, and the introduction was what passed."""
    server.answer = script((reply, "SHIP IT!"))

    done = project.signoff(*SLOGAN)

    assert (done.returncode, done.stdout) == (0, "Save Our Seas\n")


def test_an_introduction_alone_is_sent_back(project: CliProject, server: PairServer) -> None:
    server.answer = script(("Sure! Here's a slogan:", "SHIP IT!"), ("Save Our Seas", "SHIP IT!"))

    done = project.signoff(*SLOGAN)

    assert (done.returncode, done.stdout) == (0, "Save Our Seas\n"), done.stderr


def test_markdown_and_code_stay_as_they_are(project: CliProject) -> None:
    text = "Steps:\n\n1. **Boil** the water."
    project.write(".signoff/config.yaml", "agents: {pen: {kind: scripted, file: pen.yaml}}\n")
    project.write("pen.yaml", json.dumps({"rules": [{"text": text}]}))

    task = ("pair", "how to make tea", "--writer", "pen", "--no-reviewer")
    done = project.signoff(*task, "--check", "lines=3")

    assert (done.returncode, done.stdout) == (0, f"{text}\n"), done.stderr


@pytest.mark.parametrize("listing", [(500, {"error": "disk full"}), (200, {"models": 7})])
def test_a_server_that_cannot_list_its_models_is_not_said_to_be_down(
    project: CliProject, server: PairServer, listing: tuple[int, dict[str, object]]
) -> None:
    """It runs, so "ollama serve" is no remedy, and no other agent takes its place."""
    del project.environment["OLLAMA_BASE_URL"], project.environment["OLLAMA_MODEL_NAME"]
    server.listing = listing
    done = project.signoff(*SLOGAN, OLLAMA_HOST=server.url)

    assert (done.returncode, done.stdout) == (1, "")
    assert "look at the server's log" in done.stderr
    assert "ollama serve" not in done.stderr
    assert "running" not in done.stderr
    assert "https://" not in done.stderr


def test_a_timeout_is_the_kind_of_the_error(project: CliProject, server: PairServer) -> None:
    """Programs that resume a session look at it."""
    server.answer = script((Hang("one"), "no"))
    done = project.signoff(*SLOGAN, "--name", "first", "--json", OLLAMA_REQUEST_TIMEOUT="1")

    session = json.loads(done.stdout)
    assert (done.returncode, session["error_kind"]) == (1, "AgentTimeout")
    assert project.json("show", "first")["error"]["kind"] == "AgentTimeout"


def test_the_log_has_each_turn_and_whether_it_passed(
    project: CliProject, server: PairServer
) -> None:
    """The records of the seed."""
    project.write(".signoff/config.yaml", "log_file: pair.log\nlog_format: json\n")
    project.signoff(*SLOGAN)

    records = [
        json.loads(line) for line in (project.folder / ".signoff/pair.log").read_text().splitlines()
    ]
    turns = [each["message"] for each in records if "Starting turn" in each["message"]]
    assert [each.rpartition(": ")[2] for each in turns] == ["Starting turn 1", "Starting turn 2"]
    decided = [each["approved"] for each in records if "approved" in each]
    assert decided == [False, True]


def test_agents_write_and_review_on_their_own(project: CliProject, server: PairServer) -> None:
    """For programs that keep their own loop, as the seed shows it."""
    project.write(
        "own_loop.py",
        "import asyncio\n"
        "from signoff.pair import create_reviewer_agent, create_writer_agent, get_ollama_config\n"
        "from signoff.pair import is_approved\n"
        "async def main():\n"
        "    config = get_ollama_config()\n"
        "    writer = await create_writer_agent(config)\n"
        "    reviewer = await create_reviewer_agent(config)\n"
        f"    slogan = await writer.generate({TASK!r}, None)\n"
        "    review = await reviewer.evaluate(slogan)\n"
        "    print(slogan, is_approved(review))\n"
        f"    slogan = await writer.generate({TASK!r}, review)\n"
        "    print(slogan, is_approved(await reviewer.evaluate(slogan)))\n"
        "asyncio.run(main())\n",
    )

    done = subprocess.run(
        [sys.executable, "own_loop.py"],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert done.stdout == "Live Clean False\nSave Our Seas True\n", done.stderr
    assert "Previous feedback:\nToo vague." in server.asked[2]["messages"][-1]["content"]
    assert list(project.folder.glob(".signoff/*.db")) == []


def test_a_server_that_is_down_is_named_with_how_to_start_it(project: CliProject) -> None:
    """No other agent is used instead, and nothing is created."""
    done = project.signoff(*SLOGAN, OLLAMA_BASE_URL="http://127.0.0.1:9")

    assert (done.returncode, done.stdout) == (1, "")
    assert "Ollama cannot be reached at http://127.0.0.1:9" in done.stderr
    assert "ollama serve" in done.stderr
    assert not (project.folder / ".signoff").exists()
