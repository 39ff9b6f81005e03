import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from signoff.core.errors import ConfigError, InvalidWorkflow
from signoff.notation import CompileContext
from signoff.profiles import factories
from signoff.profiles.factories import (
    UNKNOWN_UNTIL_USED,
    ProfileEntry,
    ProfileFactory,
    all_profiles,
    find_profile,
    profile_commands,
    profile_names,
)
from signoff.profiles.profile import WorkflowProfile
from tests.unit.profiles.local_profiles import METHODS, profile_source


@pytest.fixture
def context(tmp_path: Path) -> Iterator[CompileContext]:
    """A project with no profiles of its own; what a test imports is forgotten after it."""
    (tmp_path / ".signoff" / "profiles").mkdir(parents=True)
    path, modules = list(sys.path), set(sys.modules)
    yield CompileContext(root=tmp_path, home=tmp_path / ".signoff", agents={})
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(ProfileFactory, "_registered", {})


def write(context: CompileContext, name: str, text: str) -> Path:
    assert context.home is not None
    path = context.home / "profiles" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def local(context: CompileContext) -> list[ProfileEntry]:
    return [each for each in all_profiles(context) if each.name not in ProfileFactory.built_in]


def imported() -> set[str]:
    return {name for name in sys.modules if name.startswith("signoff_target_")}


def test_shipped_profiles_are_listed_without_loading_them(
    context: CompileContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`profile list` works in an empty project, at once."""
    monkeypatch.delitem(sys.modules, "signoff.profiles.library.jpa_mt.profile", raising=False)

    names = profile_names(context)

    assert {"jpa-mt", "python-module"} <= set(names)
    assert "signoff.profiles.library.jpa_mt.profile" not in sys.modules


def test_shipped_profiles_are_listed_with_their_own_descriptions(context: CompileContext) -> None:
    """They are written down twice, because listing a profile must not load it."""
    listed = {each.name: each.description for each in all_profiles(context)}

    for name in ProfileFactory.built_in:
        assert listed[name] == find_profile(name, context).get_metadata()["description"]


def test_files_and_packages_of_the_project_are_listed_without_importing_them(
    context: CompileContext,
) -> None:
    """Two hundred profiles would take seconds to import."""
    write(context, "one.py", profile_source("'one'"))
    write(context, "two/__init__.py", "from .profile import register\n")
    write(context, "two/profile.py", profile_source("'two'"))
    write(context, "_shared.py", profile_source("'shared'"))
    write(context, "helper.py", "X = 1\n")
    before = imported()

    listed = [(each.name, each.description) for each in local(context)]

    assert listed == [("one", "greets someone"), ("two", "greets someone")]
    assert imported() == before


def test_only_the_profile_that_is_used_is_loaded(context: CompileContext) -> None:
    """A broken or slow profile must not disturb a session of another one."""
    write(context, "one.py", profile_source("'one'"))
    write(context, "two.py", profile_source("'two'", first="raise RuntimeError('boom')"))

    profile = find_profile("one", context)

    assert issubclass(profile, WorkflowProfile)
    assert profile.get_metadata()["name"] == "one"


def test_a_name_that_the_source_does_not_state_is_that_of_the_file(
    context: CompileContext,
) -> None:
    """Only importing the file would show it; used under another name, it says what to change."""
    write(context, "one.py", profile_source("'o' + 'ne'"))
    write(context, "two.py", profile_source("'-'.join(['a', 'b'])"))
    write(
        context, "three.py", profile_source("'x'").replace('return {"name"', 'return {**{}, "name"')
    )

    write(context, "four.py", "from elsewhere import register\n")

    listed = [(each.name, each.description) for each in local(context)]

    greets = "greets someone"
    assert listed == [("four", UNKNOWN_UNTIL_USED), ("one", greets), ("two", greets), ("x", greets)]
    assert find_profile("one", context).get_metadata()["name"] == "one"
    assert find_profile("x", context).get_metadata()["name"] == "x"
    with pytest.raises(InvalidWorkflow, match="'two', but its metadata's name is 'a-b'"):
        find_profile("two", context)


@pytest.mark.parametrize(
    ("text", "reason", "shows"),
    [
        ("def register(:\n", "SyntaxError", True),
        ("\x00", "null bytes", True),
        (profile_source("'x'").replace("def register", "def registered"), "no function reg", True),
        (
            profile_source("'broken'", first="raise RuntimeError('boom')"),
            "RuntimeError: boom",
            False,
        ),
        (profile_source("'broken'", first="import no_such_package"), "no_such_package", False),
        (
            profile_source("'broken'", methods=METHODS.replace("process_review", "x")),
            "process_review",
            False,
        ),
        (profile_source("'broken'").replace("return Greeting", "return 7"), "returns 7", False),
        (profile_source("None"), "has no name", False),
        (profile_source("1/0"), "ZeroDivisionError", False),
        (
            profile_source("'broken'", tail="raise SystemExit('stop')").replace(
                "return Greeting", ""
            ),
            "SystemExit: stop",
            False,
        ),
    ],
)
def test_what_is_wrong_with_a_profile_is_told_and_hides_no_other(
    context: CompileContext, text: str, reason: str, shows: bool
) -> None:
    """What its syntax shows is in the list; the rest is found when the profile is used."""
    write(context, "broken.py", f"{text}\n# get_metadata")
    write(context, "one.py", profile_source("'one'"))
    before = imported()

    found = {each.name: each for each in local(context)}

    assert imported() == before
    assert found["one"].problem is None
    assert (reason in str(found["broken"].problem)) == shows
    assert ("broken" in profile_names(context)) != shows
    with pytest.raises(InvalidWorkflow) as refused:
        find_profile("broken", context)
    assert reason in str(refused.value)
    assert "broken.py" in str(refused.value)


def test_a_profile_that_is_a_pipe_is_reported_and_not_read(context: CompileContext) -> None:
    """Reading a pipe would block for ever."""
    import os

    assert context.home is not None
    os.mkfifo(context.home / "profiles" / "pipe.py")

    (entry,) = local(context)

    assert "cannot be read" in str(entry.problem)


def test_an_unknown_name_is_reported_with_the_profiles_that_could_not_be_read(
    context: CompileContext,
) -> None:
    """The profile that is missing is often the broken one."""
    write(context, "my_profile.py", "def register(:\n")

    with pytest.raises(InvalidWorkflow) as refused:
        find_profile("my-profile", context)

    assert "valid names: jpa-mt, python-module" in str(refused.value)
    assert "my_profile.py:1: SyntaxError" in str(refused.value)


def test_two_profiles_of_one_name_are_an_error_that_names_both(context: CompileContext) -> None:
    """Which of them runs must not depend on the names of files."""
    write(context, "one.py", profile_source("'greeting'"))
    write(context, "two.py", profile_source("'greeting'"))

    with pytest.raises(InvalidWorkflow) as refused:
        find_profile("greeting", context)

    assert "one.py" in str(refused.value)
    assert "two.py" in str(refused.value)
    assert ["twice" in str(each.problem) for each in local(context)] == [True, True]


def test_a_local_profile_cannot_replace_a_shipped_one(context: CompileContext) -> None:
    """A file in a cloned project must not change what a known name does."""
    write(context, "mine.py", profile_source("'jpa-mt'"))

    with pytest.raises(InvalidWorkflow, match="twice"):
        find_profile("jpa-mt", context)


def test_the_entry_point_must_have_the_name_of_the_metadata(
    context: CompileContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list shows the one name, sessions record the other."""
    write(context, "installed_module.py", profile_source("'right'"))
    make_installed(monkeypatch, {"wrong": "installed_module:register", "right": "installed_module"})
    monkeypatch.syspath_prepend(str(context.root / ".signoff" / "profiles"))
    context = CompileContext(root=context.root, agents={})

    with pytest.raises(InvalidWorkflow) as refused:
        find_profile("wrong", context)

    assert "'wrong'" in str(refused.value)
    assert "'right'" in str(refused.value)
    assert find_profile("right", context).get_metadata()["name"] == "right"
    (wrong,) = [each for each in all_profiles(context) if each.name == "wrong"]
    assert wrong.origin == "installed: installed_module:register"
    sys.modules.pop("installed_module")


def test_an_installed_profile_that_cannot_be_imported_is_reported(
    context: CompileContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that was half removed must be named."""
    make_installed(monkeypatch, {"gone": "no_such_package_anywhere.profile:register"})

    with pytest.raises(InvalidWorkflow, match="no_such_package_anywhere"):
        find_profile("gone", context)


def make_installed(monkeypatch: pytest.MonkeyPatch, points: dict[str, str]) -> None:
    monkeypatch.setattr(factories, "entry_points", lambda _group: points)


@pytest.mark.usefixtures("registry")
def test_a_profile_that_the_program_registers_counts_and_wins(context: CompileContext) -> None:
    """A program that registers its own class means that class."""
    write(context, "one.py", profile_source("'one'"))
    one = find_profile("one", context)
    ProfileFactory.register("one", one)

    assert find_profile("one", context) is one
    assert [each.origin for each in all_profiles(context) if each.name == "one"] == [
        "registered by this program"
    ]


def test_a_profile_adds_its_commands_to_a_group(context: CompileContext) -> None:
    """A profile for tables may have a command that reads one."""
    tail = "cli_group.command('hello')(lambda: None)"
    write(context, "one.py", profile_source("'one'", tail=tail))
    write(context, "two.py", profile_source("'two'", tail="raise RuntimeError('boom')"))
    group = click.Group()

    loaded = {each.name: each for each in profile_commands(context, group)}

    assert list(group.commands) == ["hello"]
    assert "boom" in str(loaded["two"].problem)


def test_the_folder_of_the_settings_is_searched(context: CompileContext) -> None:
    """A team keeps its profiles with its code."""
    folder = context.root / "team"
    folder.mkdir()
    (folder / "one.py").write_text(profile_source("'one'"))
    write(context, "two.py", profile_source("'two'"))

    names = profile_names(with_dir(context, "team"))

    assert "one" in names
    assert "two" not in names


def test_a_missing_folder_of_the_settings_is_refused(context: CompileContext) -> None:
    """A typo must not look like a project without profiles."""
    with pytest.raises(ConfigError, match="'tema'"):
        profile_names(with_dir(context, "tema"))


def with_dir(context: CompileContext, folder: str) -> CompileContext:
    settings: dict[str, dict[str, Any]] = {"profiles": {"dir": folder}}
    return CompileContext(root=context.root, home=context.home, settings=settings, agents={})
