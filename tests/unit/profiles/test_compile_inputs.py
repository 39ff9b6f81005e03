from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core.args import bind
from signoff.errors import InvalidParams, ProviderError, UnknownName
from signoff.profiles.compile import StandardsSource, context_params, read_context_files
from signoff.profiles.settings import ProfilesSection
from tests.unit.profiles.session_fixture import ProbeProfile

SCHEMA = {
    "entity": {"type": "string", "required": True, "description": "the name of the class"},
    "ddl": {"type": "path", "required": True, "exists": True},
    "out": {"type": "path"},
    "scope": {"type": "string", "choices": ["domain", "full"], "default": "full"},
    "version": {"type": "int", "default": "17"},
    "audit": {"type": "bool", "default": False},
    "note": {},
}

KEYS = "valid: type, required, choices, exists, default, description"


def context(folder: Path, **values: Any) -> tuple[dict[str, Any], list[str]]:
    (folder / "table.sql").touch()
    params, problems = context_params(SCHEMA, folder)
    assert problems == []
    values, found = bind(params, values)
    return values, [str(problem) for problem in found]


def test_values_are_converted_and_defaults_filled_in(tmp_path: Path) -> None:
    """A profile sees every field, each with its own type."""
    values, problems = context(
        tmp_path, entity="User", ddl="table.sql", version="21", audit="yes", scope="domain"
    )

    assert problems == []
    assert values == {
        "entity": "User",
        "ddl": "table.sql",
        "out": None,
        "scope": "domain",
        "version": 21,
        "audit": True,
        "note": None,
    }


def test_defaults_are_converted_too(tmp_path: Path) -> None:
    """A default in quotes is still a number."""
    values, _ = context(tmp_path, entity="User", ddl="table.sql")

    assert (values["scope"], values["version"], values["audit"]) == ("full", 17, False)


def test_all_problems_are_reported_together_with_their_fields(tmp_path: Path) -> None:
    """Users fix a command in one go."""
    _, problems = context(
        tmp_path, ddl="gone.sql", scope="all", version="new", audit="perhaps", typo="x"
    )

    assert problems == [
        "parameter 'typo': is unknown (valid: entity, ddl, out, scope, version, audit, note)",
        "parameter 'entity': is missing (the name of the class)",
        "parameter 'ddl': 'gone.sql' does not exist (give it as ddl=VALUE)",
        "parameter 'scope': 'all' is not one of the choices (choose one of: domain, full)",
        "parameter 'version': 'new' is not a whole number (give it as version=VALUE)",
        "parameter 'audit': 'perhaps' is not true or false (give it as audit=VALUE)",
    ]


@pytest.mark.parametrize("ddl", ["table.sql", "./table.sql", "sub/../table.sql", ".", "ABSOLUTE"])
def test_a_path_that_exists_is_accepted_as_it_is_written(tmp_path: Path, ddl: str) -> None:
    """It starts in the project, wherever the command is run."""
    (tmp_path / "sub").mkdir()
    value = str(tmp_path / "table.sql") if ddl == "ABSOLUTE" else ddl

    values, problems = context(tmp_path, entity="User", ddl=value)

    assert problems == []
    assert values["ddl"] == value


@pytest.mark.parametrize("ddl", ["", "  ", "gone.sql", "table.sql/x", "a\0b", "x" * 5000])
def test_a_path_that_does_not_exist_is_refused(tmp_path: Path, ddl: str) -> None:
    """The session would fail later, with a run to clean up."""
    _, problems = context(tmp_path, entity="User", ddl=ddl)

    assert len(problems) == 1
    assert problems[0].startswith("parameter 'ddl': ")


def test_a_required_text_cannot_be_empty(tmp_path: Path) -> None:
    """`entity=` is a forgotten value."""
    _, problems = context(tmp_path, entity=" ", ddl="table.sql", note="")

    assert problems == ["parameter 'entity': is empty (the name of the class)"]


def test_choices_have_the_type_of_their_field(tmp_path: Path) -> None:
    """A number from the command line is compared as a number."""
    params, problems = context_params({"v": {"type": "int", "choices": [17, "21"]}}, tmp_path)

    assert problems == []
    assert bind(params, {"v": "21"}) == ({"v": 21}, [])
    assert [str(each) for each in bind(params, {"v": "8"})[1]] == [
        "parameter 'v': 8 is not one of the choices (choose one of: 17, 21)"
    ]


def test_a_required_field_ignores_its_default(tmp_path: Path) -> None:
    """The author wants an explicit value."""
    params, _ = context_params({"a": {"required": True, "default": "x"}}, tmp_path)

    assert params["a"].required


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"type": "str"}, "unknown type 'str' (valid: string, int, bool, path)"),
        ({"type": ["int"]}, "unknown type ['int'] (valid: string, int, bool, path)"),
        ({"choice": []}, f"unknown key 'choice' ({KEYS})"),
        ("string", f"is not a mapping ({KEYS})"),
        ({"required": "yes"}, "required is 'yes' (write true or false)"),
        ({"type": "path", "exists": 1}, "exists is 1 (write true or false)"),
        ({"choices": "ab"}, "choices is 'ab' (write a list)"),
        ({"exists": True}, "exists is only for paths (remove it, or write type: path)"),
        ({"type": "int", "default": "many"}, "default: 'many' is not a whole number"),
        ({"choices": ["a"], "default": "b"}, "default: 'b' is not one of the choices"),
        ({"type": "int", "choices": ["a"]}, "choices: 'a' is not a whole number"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_schema_is_reported(tmp_path: Path, field: Any, problem: str) -> None:
    """The author of the profile has to fix it, not its user."""
    _, problems = context_params({"good": {}, "bad": field}, tmp_path)

    assert [str(each) for each in problems] == [f"context field 'bad': {problem}"]


@pytest.mark.parametrize("name", ["", "a-b", "a b", "1a", "_a", "ä", 7])
def test_the_name_of_a_field_can_be_typed(tmp_path: Path, name: Any) -> None:
    """It is used in commands and in templates."""
    _, problems = context_params({name: {}}, tmp_path)

    assert [each.what for each in problems] == ["is not a valid name"]


def test_a_field_cannot_have_the_name_of_the_standards(tmp_path: Path) -> None:
    """The engine records them with the values of the context."""
    _, problems = context_params({"standards_bundle": {}}, tmp_path)

    assert [each.where for each in problems] == ["context field 'standards_bundle'"]


FILE_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "ddl": {"type": "path", "exists": True},
    "notes": {"type": "path", "exists": True},
    "target": {"type": "path"},
    "name": {"type": "string"},
}


def test_the_text_of_an_existing_file_is_added_under_the_name_of_its_field(tmp_path: Path) -> None:
    """A profile does no I/O, so it gets the text with its context."""
    (tmp_path / "shop.sql").write_text("create table é", "utf-8")
    other = tmp_path / "other.md"
    other.write_text("notes", "utf-8")

    texts = read_context_files(FILE_FIELDS, {"ddl": "shop.sql", "notes": str(other)}, tmp_path)

    assert texts == {"ddl_text": "create table é", "notes_text": "notes"}


def test_other_fields_are_not_read(tmp_path: Path) -> None:
    """A path that need not exist, a folder or a field without a value has no text."""
    context = {"ddl": "", "notes": ".", "target": "missing.md", "name": "x.sql"}

    assert read_context_files(FILE_FIELDS, context, tmp_path) == {}


def test_every_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """The user fixes all of them at once."""
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidParams) as error:
        read_context_files(FILE_FIELDS, {"ddl": "binary.sql", "notes": "missing"}, tmp_path)

    assert [str(problem) for problem in error.value.problems] == [
        "ddl: binary.sql:1: cannot be read: it is not UTF-8 text",
        "notes: missing: does not exist",
    ]


class Layered(ProbeProfile):
    """Has standards of its own."""

    def get_standards_config(self, context: Any) -> dict[str, Any]:
        return {"provider": "yaml-rules", "root": str(context["subject"])}


def source(**section: Any) -> StandardsSource:
    settings = ProfilesSection.of({"profiles": section})
    return StandardsSource.of("probe", Layered(), settings, {"subject": "rules"})


def test_without_settings_a_profile_says_which_standards_it_has() -> None:
    """A shipped profile works as it is."""
    found = source(standards={"other": {"root": "x"}})

    assert found == StandardsSource("yaml-rules", {"provider": "yaml-rules", "root": "rules"})


def test_the_settings_replace_the_standards_of_a_profile() -> None:
    """A team uses a shipped profile with its own rules, and needs no subclass."""
    found = source(standards={"probe": {"root": "team"}})

    assert found == StandardsSource("scoped-layer-fs", {"root": "team"}, "profiles.standards.probe")


def test_the_provider_of_one_profile_beats_that_of_all() -> None:
    """The setting for one profile is the more specific one."""
    every = source(standards_provider="house", standards={"probe": {"root": "team"}})
    own = source(standards_provider="house", standards={"probe": {"provider": "yaml-rules"}})

    assert (every.provider, own.provider) == ("house", "yaml-rules")


def test_mistakes_in_the_settings_are_reported_with_the_setting(tmp_path: Path) -> None:
    """The user has to know that the mistake is not the profile's."""
    wrong = source(standards={"probe": {"provider": "yaml-rules", "rooot": "x"}})

    with pytest.raises(ProviderError, match=r"profiles\.standards\.probe: .*'rooot'.*root"):
        wrong.create(tmp_path)
    with pytest.raises(ProviderError, match=r"^configuration"):
        source().create(tmp_path)
    with pytest.raises(UnknownName, match="yaml-rules"):
        source(standards={"probe": {"provider": "nowhere"}}).create(tmp_path)
