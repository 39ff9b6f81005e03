import subprocess
import sys

import click
import pytest

from signoff import __version__
from signoff.cli import main
from signoff.cli.entry import _SECTIONS, COMMANDS, signoff

QUICK = """
import sys
from signoff.cli import main
main(["--version"])
heavy = {"click", "rich", "pydantic", "ruamel.yaml", "asyncio", "sqlite3"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""
HELPFUL = """
import sys
from signoff.cli import main
main(["--help"])
heavy = {"rich", "pydantic", "ruamel.yaml", "asyncio", "sqlite3"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""


def commands() -> list[tuple[str, click.Command]]:
    context = click.Context(signoff)
    found = [(name, signoff.get_command(context, name)) for name in COMMANDS]
    return [(name, command) for name, command in found if command is not None]


@pytest.mark.parametrize("program", [QUICK, HELPFUL], ids=["version", "help"])
def test_version_and_help_are_answered_without_importing_anything_heavy(program: str) -> None:
    """They are typed all the time, and shells ask for them behind people's backs."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "signoff" in done.stdout


def test_every_option_says_what_it_does() -> None:
    """A bare name leaves people to try it out."""
    silent = [
        f"{name} {option.opts[-1]}"
        for name, command in commands()
        for each in (command, *getattr(command, "commands", {}).values())
        for option in each.params
        if isinstance(option, click.Option) and not option.help
    ]

    assert silent == []


def test_every_command_is_listed_once_in_the_help() -> None:
    """A command that help does not list does not exist for most people."""
    listed = [name for names in _SECTIONS.values() for name in names]

    assert sorted(listed) == sorted(COMMANDS)
    assert [name for name, _ in commands()] == list(COMMANDS)


@pytest.mark.parametrize(("name", "command"), commands(), ids=list(COMMANDS))
def test_the_help_of_every_command_explains_and_shows_examples(
    name: str, command: click.Command
) -> None:
    """People read examples first."""
    with click.Context(command, info_name=f"signoff {name}") as context:
        text = command.get_help(context)

    assert command.help
    assert "Examples:" in text
    assert f"signoff {name}" in text.split("Examples:")[1]


@pytest.mark.parametrize(("name", "command"), commands(), ids=list(COMMANDS))
def test_every_command_can_speak_json_and_show_a_traceback(
    name: str, command: click.Command
) -> None:
    """Scripts rely on the one, bug reports on the other."""
    leaves = list(command.commands.values()) if isinstance(command, click.Group) else [command]

    for leaf in leaves:
        options = {text for parameter in leaf.params for text in parameter.opts}
        assert {"--json", "--debug"} <= options


def test_a_mistyped_command_is_answered_with_the_right_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line, exit code 2."""
    assert main(["resum"]) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "signoff: no command called 'resum'; did you mean 'resume'? (see: signoff --help)"
    ]


def test_the_version_is_told_by_the_long_way_too(capsys: pytest.CaptureFixture[str]) -> None:
    """`signoff --version --debug` does not take the short cut."""
    assert main(["--version", "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"signoff {__version__}")


def test_an_unexpected_failure_is_one_line_unless_debugging(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback tells a user nothing; it tells us everything."""
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
    """Libraries raise things that are no `Exception`; a traceback is still not for users."""

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
            if name == "signoff.cli.entry":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "signoff.cli.entry")
    monkeypatch.setattr(sys, "meta_path", [Impatient(), *sys.meta_path])

    assert main(["runs"]) == 130
