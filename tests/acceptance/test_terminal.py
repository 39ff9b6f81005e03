import contextlib
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from tests.acceptance.cli_project import PROGRAM, CliProject
from tests.acceptance.workflows import ENDS, HOLDS, SEVERAL, SIGNS
from tests.patience import PATIENCE_SECONDS, wait_until

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a pseudo-terminal, with functions to read and type."""

    def __init__(
        self, project: CliProject, *arguments: str, width: int, environment: dict[str, str]
    ) -> None:
        self._master, slave = pty.openpty()
        ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        self.process = subprocess.Popen(
            [PROGRAM, *arguments],
            cwd=project.folder,
            env=project.environment | {"TERM": "xterm-256color"} | environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.raw = ""

    @property
    def text(self) -> str:
        """Everything that was printed, without escape codes."""
        return _ESCAPES.sub("", self.raw)

    def read_until(self, words: str, *, after: str = "") -> None:
        """Reads until a text was printed, optionally after another one."""
        end = time.monotonic() + PATIENCE_SECONDS
        while words not in self.text.partition(after)[2] if after else words not in self.text:
            assert time.monotonic() < end, f"{words!r} never came; so far:\n{self.text}"
            assert self._read(), f"it ended without {words!r}:\n{self.text}"

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Does what ctrl-c does in a shell to a command that waits for what is typed.

        Python notices a signal only once it reads: one that comes before would be noticed with
        the next key.
        """
        wait_until(lambda: is_sleeping(self.process.pid), "waiting for input")
        self.process.send_signal(signal.SIGINT)

    def exit_code(self) -> int:
        """Reads to the end and returns the exit code."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self._read() and time.monotonic() < end:
            pass
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.5)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


def is_sleeping(pid: int) -> bool:
    """Returns whether a process is waiting; true on systems that do not show that."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "S"


@contextlib.contextmanager
def terminal(
    project: CliProject, *arguments: str, width: int = 80, environment: dict[str, str] | None = None
) -> Iterator[Terminal]:
    opened = Terminal(project, *arguments, width=width, environment=environment or {})
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def signs(project: CliProject) -> CliProject:
    project.write("signs.py", SIGNS)
    project.write("ends.py", ENDS)
    return project


def test_a_waiting_run_prompts_on_the_terminal_and_continues(signs: CliProject) -> None:
    """A user at the terminal needs no second command."""
    with terminal(signs, "run", "signs.py", "--name", "one") as screen:
        screen.read_until("[l]ater:")
        screen.type("y\n")
        screen.read_until("reason (optional):")
        screen.type("reads well\n")
        code = screen.exit_code()

    assert code == 0, screen.text
    assert "Ship this?" in screen.text
    assert "│ the draft" in screen.text
    assert "✓ completed  one" in screen.text
    assert "approved by" in signs.signoff("logs", "one").stdout


@pytest.mark.parametrize("key", ["ctrl-c", "ctrl-d"])
def test_leaving_a_prompt_keeps_earlier_answers_and_returns_to_the_shell(
    project: CliProject, key: str
) -> None:
    """If the prompt came again, the user's next shell command would become the answer."""
    project.write("several.py", SEVERAL)
    with terminal(project, "run", "several.py", "--name", "one") as screen:
        screen.read_until("[l]ater:")
        screen.type("y\n")
        screen.read_until("reason (optional):")
        screen.type("reads well\n")
        screen.read_until("[l]ater:", after="(2 of 3)")
        screen.interrupt() if key == "ctrl-c" else screen.type("\x04")
        code = screen.exit_code()

    assert code == 10, screen.text
    assert screen.text.count("Ship a?") == 1
    assert "#1 approval: approved by" in screen.text
    assert "signoff resume one" in screen.text
    assert [request["number"] for request in project.json("inbox")] == [2, 3]


def test_an_invalid_answer_is_asked_for_again(signs: CliProject) -> None:
    """Only y and n answer an approval."""
    with terminal(signs, "run", "signs.py") as screen:
        screen.read_until("[l]ater:")
        screen.type("perhaps\n")
        screen.read_until("type y, n, v or l")
        screen.type("n\n")
        screen.read_until("what is wrong (optional):")
        screen.type("\n")
        code = screen.exit_code()

    assert code == 14


def test_keys_typed_before_a_prompt_do_not_answer_it(project: CliProject) -> None:
    """Keys pressed during a step must not approve the next request."""
    project.write("early.py", SIGNS.replace("echo drafted", "touch working; sleep 1; echo drafted"))
    with terminal(project, "run", "early.py", "--name", "one") as screen:
        project.wait_for_file("working")
        screen.type("y\n\n")
        screen.read_until("[l]ater:")
        screen.type("l\n")
        code = screen.exit_code()

    assert code == 10
    assert project.json("show", "one")["status"] == "waiting"


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_view_shows_the_current_step_and_fits_the_terminal(
    project: CliProject, width: int
) -> None:
    """Users watch it for hours."""
    project.write("holds.py", HOLDS)
    with terminal(project, "run", "holds.py", "--name", "one", width=width) as screen:
        project.wait_for("pid")
        screen.read_until("running sh -c")
        project.write("go", "")
        code = screen.exit_code()

    assert code == 0
    assert "first: ok in " in screen.text
    assert max(len(line) for line in re.split(r"[\r\n]+", screen.text)) <= width


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_disables_colors(
    signs: CliProject, environment: dict[str, str], coloured: bool
) -> None:
    """Many tools support NO_COLOR."""
    with terminal(signs, "run", "signs.py", environment=environment) as screen:
        screen.read_until("[l]ater:")
        screen.type("l\n")
        screen.exit_code()

    assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", screen.raw)) is coloured


def test_a_list_on_a_narrow_terminal_keeps_names_reasons_and_waits(signs: CliProject) -> None:
    """Users copy names into the next command, and want to know why it failed or when it goes on."""
    name = "a-rather-long-name-for-a-run-that-a-user-chose"
    signs.signoff("run", "ends.py", "-i", "ending=failed", "--name", "a-name-of-usual-length")
    signs.signoff("run", "ends.py", "-i", "ending=failed", "--name", name)
    signs.signoff("run", "ends.py", "-i", "ending=parked", "--name", "parked")

    with terminal(signs, "runs", width=80) as screen:
        screen.exit_code()

    lines = [line.rstrip() for line in screen.text.splitlines()]
    assert max(map(len, lines)) <= 80
    assert any(name in line and "failed" in line for line in lines)
    assert any("a-name-of" in line and "the handler of" in line for line in lines), screen.text
    assert any("parked" in line and " in 59m" in line for line in lines)


RETRIED = """
import os, signal
from pathlib import Path
from signoff.contracts import define_workflow

def work(ctx):
    with Path("attempts").open("a") as file:
        file.write(f"{ctx.attempt} ")
    if ctx.attempt == 2 and not Path("fixed").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return {"n": ctx.attempt}

check = {"name": "later", "check": "result.n > 1", "error": "Not good yet"}
WORKFLOW = define_workflow(
    {"type": "t", "steps": [{"name": "work", "command": work, "postconditions": [check]}]}
)
"""


def test_a_run_that_was_killed_during_a_retry_asks_how_to_proceed(project: CliProject) -> None:
    """The human sees the error first; the number of the attempt survives the kill."""
    project.write("retried.py", RETRIED)
    killed = project.start("run", "retried.py", "--name", "one")
    killed.wait(PATIENCE_SECONDS)
    project.write("fixed", "")

    with terminal(project, "resume", "one", width=120) as first:
        first.read_until("attempt 2; the last one failed: Not good yet")
        first.read_until("How to proceed?")
        first.type("stop\n")
        stopped = first.exit_code()
    with terminal(project, "resume", "one") as second:
        second.read_until("How to proceed?")
        second.type("\n")
        continued = second.exit_code()

    assert killed.returncode != 0
    assert (stopped, continued) == (130, 0)
    assert (project.folder / "attempts").read_text() == "1 2 2 "


def test_a_retry_that_no_one_decides_about_is_left_alone_or_continues_without_a_terminal(
    project: CliProject,
) -> None:
    """Leaving the question must not start paid work, and a script must not hang at it."""
    project.write("retried.py", RETRIED)
    project.start("run", "retried.py", "--name", "one").wait(PATIENCE_SECONDS)
    project.write("fixed", "")
    shown = project.signoff("show", "one").stdout

    with terminal(project, "resume", "one") as screen:
        screen.read_until("How to proceed?")
        screen.interrupt()
        left = screen.exit_code()
    attempts = (project.folder / "attempts").read_text()
    continued = project.signoff("resume", "one")

    assert "attempt 2; the last one failed: Not good yet" in shown
    assert (left, attempts) == (130, "1 2 ")
    assert continued.returncode == 0, continued.stderr
    assert "the last one failed: Not good yet" in continued.stderr
    assert "How to proceed?" not in continued.stderr
    assert (project.folder / "attempts").read_text() == "1 2 2 "


def test_an_error_has_a_line_for_each_thing_to_do(project: CliProject) -> None:
    """One line of 200 characters hides what the user has to type."""
    project.write("a.md", "Text.\n")
    options = ("review", "a.md", "--preset", "docs")

    with terminal(project, *options, width=120, environment={"PATH": os.defpath}) as shown:
        shown.read_until("signoff doctor -v")

    lines = shown.text.replace("\r", "").splitlines()
    start = next(n for n, line in enumerate(lines) if "no agent can review yet" in line)
    assert lines[start].startswith("signoff: auto is not ready: no agent")
    assert lines[start + 1].startswith("  Nothing was started; fix that, name another agent")
    assert lines[start + 2] == "  add --agent manual"
    assert lines[start + 3] == "  see what each agent needs: signoff doctor -v"


SLOGAN = """
from signoff import Outcome, StepDef, Workflow

SCHEMA = {"type": "object", "required": ["slogan"]}


async def write(ctx):
    reply = await ctx.ask("manual", "Write a slogan.", schema=SCHEMA)
    await ctx.write("final/slogan.txt", reply.value["slogan"])
    return Outcome.OK, {}


WORKFLOW = Workflow("slogan", StepDef("write", handler=write, next={Outcome.OK: None}))
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="the clipboard of a Mac is asked differently")
def test_a_prompt_is_copied_and_the_answer_is_checked_against_the_schema(
    project: CliProject,
) -> None:
    """The user only has to paste the prompt into the chat and the answer back."""
    project.write("flow.py", SLOGAN)
    clipboard = project.write("bin/xclip", f"#!/bin/sh\ncat > {project.folder}/copied\n")
    clipboard.chmod(0o755)
    here = {"DISPLAY": ":0", "PATH": f"{clipboard.parent}:{os.defpath}"}

    with terminal(
        project, "run", "flow.py", "--name", "one", width=200, environment=here
    ) as screen:
        screen.read_until("copied to the clipboard): ")
        screen.read_until("means later")
        screen.type("Good beans.\n.\n")
        screen.read_until("it is not JSON")
        screen.read_until("means later")
        screen.type('{"slogan": "Good beans."}\n.\n')
        code = screen.exit_code()

    assert code == 0, screen.text
    copied = (project.folder / "copied").read_text()
    assert copied.startswith("Write a slogan.")
    assert '"slogan"' in copied
    runs = project.folder / ".signoff" / "runs" / "one"
    assert (runs / "final" / "slogan.txt").read_text() == "Good beans."
