from pathlib import Path
from typing import Any

import pytest

from signoff.core.args import bind
from signoff.profiles.compile import context_params

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
