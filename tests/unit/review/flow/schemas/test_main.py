import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

import signoff.review.flow.schemas
from signoff.review.flow.schemas.__main__ import schemas

FOLDER = Path(signoff.review.flow.schemas.__file__).parent
FIXTURES = Path(__file__).parents[4] / "fixtures"
EXAMPLES = [
    *(("flow", path) for path in FIXTURES.glob("flows/*.yaml") if path.stem != "genloop"),
    ("genloop", FIXTURES / "flows" / "genloop.yaml"),
    *(("constraint", path) for path in FIXTURES.glob("constraints/*.yaml")),
    *(("goal", path) for path in FIXTURES.glob("goals/*.yaml")),
]


def test_the_shipped_schemas_are_those_of_the_models() -> None:
    """Run `python -m signoff.review.flow.schemas`; editors would mark what the program accepts."""
    shipped = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")}

    assert shipped == schemas()


@pytest.mark.parametrize(("kind", "path"), EXAMPLES, ids=lambda each: getattr(each, "stem", each))
def test_every_example_is_valid_by_its_schema(kind: str, path: Path) -> None:
    """Users learn to ignore an editor that underlines a valid file."""
    checker = jsonschema.Draft202012Validator(schema(kind))

    assert list(checker.iter_errors(YAML(typ="safe").load(path))) == []


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("flow", {"workflow": [{"step": "critque"}]}),
        ("flow", {"workflow": [{"step": "generate"}], "nmae": "x"}),
        ("genloop", {"max_iterations": 30}),
        ("constraint", {"rules": [{"id": "x"}]}),
        ("goal", {"source": {}}),
    ],
)
def test_an_invalid_file_violates_its_schema(kind: str, wrong: dict[str, Any]) -> None:
    """The editor has to mark mistakes while the user writes."""
    assert not jsonschema.Draft202012Validator(schema(kind)).is_valid(wrong)


@pytest.mark.parametrize("kind", ["flow", "genloop", "constraint", "goal"])
def test_every_field_is_described(kind: str) -> None:
    """Editors show the description next to the key."""
    undescribed = [name for name, field in fields(schema(kind)) if len(field["description"]) < 10]

    assert undescribed == []


def schema(kind: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"{kind}.schema.json").read_text("utf-8"))
    return content


def fields(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    inside = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict) and "properties" in node:
        yield from node["properties"].items()
    for each in inside:
        yield from fields(each)
