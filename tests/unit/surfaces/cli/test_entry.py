import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from signoff.surfaces.cli import main
from signoff.surfaces.cli.entry import COMMANDS, signoff
from tests.patience import PATIENCE_SECONDS
from tests.tables import table

QUICK = """
import sys
from signoff.surfaces.cli import main
main(["--version"])
heavy = {"click", "rich", "pydantic", "ruamel.yaml", "asyncio", "sqlite3"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""
HELPFUL = """
import sys
from signoff.surfaces.cli import main
main(["--help"])
heavy = {"rich", "pydantic", "ruamel.yaml", "asyncio", "sqlite3"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""


NAMES = signoff.list_commands(click.Context(signoff))


def commands() -> list[tuple[str, click.Command]]:
    context = click.Context(signoff)
    found = [(name, signoff.get_command(context, name)) for name in NAMES]
    return [(name, command) for name, command in found if command is not None]


GROUPS = [name for name, command in commands() if isinstance(command, click.Group)]


@pytest.mark.parametrize("program", [QUICK, HELPFUL], ids=["version", "help"])
def test_version_and_help_are_answered_without_importing_anything_heavy(program: str) -> None:
    """They are used all the time, also by shells for completion."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "signoff" in done.stdout


def test_every_option_says_what_it_does() -> None:
    """Without a help text, users have to try the option out."""
    silent = [
        f"{name} {option.opts[-1]}"
        for name, command in commands()
        for each in (command, *getattr(command, "commands", {}).values())
        for option in each.params
        if isinstance(option, click.Option) and not option.help
    ]

    assert silent == []


def test_help_fits_an_ordinary_terminal(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    """Lines that are wider break in the middle of a word."""
    monkeypatch.setenv("COLUMNS", "80")

    for arguments in ([], *([name] for name in NAMES)):
        with subtests.test(str(arguments)):
            main([*arguments, "--help"])

            shown = capsys.readouterr().out.splitlines()
            assert shown
            assert [line for line in shown if len(line) > 80] == []


@pytest.mark.parametrize("group", [name for name in GROUPS if name != "mcp"])
def test_a_group_without_a_sub_command_shows_its_help(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It began with `signoff: Usage:`, as if the help were an error."""
    main([group, "--help"])
    wanted = capsys.readouterr().out

    code = main([group])

    shown = capsys.readouterr()
    assert (shown.err, shown.out, code) == (wanted, "", 2)


@pytest.mark.parametrize("group", GROUPS)
def test_no_summary_in_the_help_of_a_group_is_cut(
    group: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a sentence does not say what a command does."""
    monkeypatch.setenv("COLUMNS", "80")

    main([group, "--help"])

    _, _, listed = capsys.readouterr().out.partition("Commands:")
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


@table(("name", "command"), commands())
def test_the_help_of_every_command_explains_and_shows_examples(
    name: str, command: click.Command
) -> None:
    """People read examples first."""
    with click.Context(command, info_name=f"signoff {name}") as context:
        text = command.get_help(context)

    assert command.help
    assert "Examples:" in text
    assert f"signoff {name}" in text.split("Examples:")[1]


@table(("name", "command"), commands())
def test_every_command_can_speak_json_and_show_a_traceback(
    name: str, command: click.Command
) -> None:
    """Scripts rely on the one, bug reports on the other."""
    leaves = list(command.commands.values()) if isinstance(command, click.Group) else [command]

    # What follows `skill script MODULE` belongs to the script.
    for leaf in (each for each in leaves if each.name != "script"):
        options = {text for parameter in leaf.params for text in parameter.opts}
        assert {"--json", "--debug"} <= options


def test_an_unexpected_failure_is_one_line_unless_debugging(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback is of no use to a user, but bug reports need it."""
    monkeypatch.setitem(COMMANDS, "no_such_module", "A command whose module is missing.")

    assert main(["no_such_module"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["no_such_module", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("error", [GeneratorExit, BaseException], ids=["generator", "any"])
def test_what_no_program_expects_is_one_line_too(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
) -> None:
    """Some libraries raise errors outside `Exception`; users get no traceback for those either."""

    def broken() -> None:
        raise error

    monkeypatch.setattr(signoff, "get_command", lambda *_: click.Command("runs", callback=broken))

    assert main(["runs"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_ctrl_c_before_anything_has_begun_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most of a quick command's time is imports."""

    class Impatient:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "signoff.surfaces.cli.entry":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "signoff.surfaces.cli.entry")
    monkeypatch.setattr(sys, "meta_path", [Impatient(), *sys.meta_path])

    assert main(["runs"]) == 130


IN_A_FOLDER_THAT_IS_GONE = """
import os, sys
from signoff.surfaces.cli import main
os.rmdir(os.getcwd())
sys.exit(main(["runs"]))
"""


def test_a_folder_that_is_gone_is_named_as_the_reason(tmp_path: Path) -> None:
    """`No such file or directory; this is a bug` sends people looking in the wrong place."""
    done = run_python(IN_A_FOLDER_THAT_IS_GONE, cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr == (
        "signoff: the current directory no longer exists; change to another one\n"
    )


CLOSED = """
import os, sys
from signoff.surfaces.cli import main
sys.stdin = sys.stdout = None
os.close(0)
os.close(1)
code = main(["runs"])
sys.exit(code if sys.stdin is not None and not sys.stdin.isatty() else "no stdin")
"""


def test_closed_streams_disturb_nobody(tmp_path: Path) -> None:
    """Services are started with stdin and stdout closed."""
    (tmp_path / ".signoff").mkdir()

    done = run_python(CLOSED, cwd=tmp_path)

    assert (done.returncode, "bug" in done.stderr) == (0, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_fits_nowhere_is_said_in_one_line(tmp_path: Path) -> None:
    """A full disk behind `> file` is neither a bug nor a success."""
    (tmp_path / ".signoff").mkdir()

    with Path("/dev/full").open("w") as full:
        done = run_python(
            "import sys; from signoff.surfaces.cli import main; sys.exit(main(['runs']))",
            cwd=tmp_path,
            stdout=full,
        )

    assert done.returncode == 1
    assert done.stderr == "signoff: No space left on device\n"


NOBODY_READS = """
import os, sys
from signoff.surfaces.cli.entry import _flush_stdout
reader, writer = os.pipe()
os.dup2(writer, 1)
os.close(reader)
print("lost")
sys.exit(_flush_stdout(10))
"""


def test_a_reader_that_has_seen_enough_changes_no_exit_code(tmp_path: Path) -> None:
    """`signoff run | head` must not end with 0 while the run waits."""
    done = run_python(NOBODY_READS, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (10, "")


def run_python(program: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.run(
        [sys.executable, "-c", program],
        text=True,
        timeout=PATIENCE_SECONDS,
        env=buffered(),
        **streams,
    )


def buffered() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
