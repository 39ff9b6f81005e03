import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

import signoff.contracts.schemas
from signoff.contracts.schemas.made import schemas

FOLDER = Path(signoff.contracts.schemas.__file__).parent
EXAMPLE = Path(__file__).parents[4] / "examples/release_notes/release_notes.yaml"


def checker() -> jsonschema.Draft202012Validator:
    text = (FOLDER / "contract.schema.json").read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def test_the_shipped_schema_is_that_of_the_model() -> None:
    """Run `python -m signoff.contracts.schemas`: an editor would mark what the program accepts."""
    shipped = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")}

    assert shipped == schemas()


def test_the_example_is_valid_by_its_schema() -> None:
    """Users would learn to ignore an editor that marks valid files."""
    assert list(checker().iter_errors(YAML(typ="safe").load(EXAMPLE))) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "x"},
        {"steps": [{"name": "a"}]},
        {"type": "x", "steps": [{"name": "a", "comand": ["x"]}]},
        {"type": "x", "steps": [{"name": "a", "next": {"condition": "true"}}]},
        {"type": "x", "steps": [{"name": "a", "human_gate": {"prompt": "p"}}]},
    ],
)
def test_a_wrong_file_is_wrong_by_its_schema(wrong: dict[str, Any]) -> None:
    """Editors report mistakes while the author writes."""
    assert not checker().is_valid(wrong)
