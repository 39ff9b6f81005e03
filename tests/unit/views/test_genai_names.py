import json
from pathlib import Path

from signoff.views import genai_names as names

REGISTRY = json.loads(
    (Path(__file__).parents[2] / "fixtures/otel/genai_names.json").read_text("utf-8")
)
"""The names and types of the registry at the pinned commit."""

STANDARD = {
    constant: value
    for constant, value in vars(names).items()
    if isinstance(value, str) and value.startswith("gen_ai.")
}


def test_every_name_of_the_table_is_in_the_registry() -> None:
    """A backend ignores a misspelled attribute, and no one notices."""
    attributes = {*STANDARD.values(), *names.USAGE.values()}

    assert len(attributes) > 15
    assert attributes <= REGISTRY["attributes"].keys()
    assert {names.CHAT, names.INVOKE_AGENT, names.INVOKE_WORKFLOW} <= set(REGISTRY["operations"])


def test_tokens_are_whole_numbers_and_names_are_texts() -> None:
    """A collector drops an attribute whose type it does not expect."""
    assert {REGISTRY["attributes"][name] for name in names.USAGE.values()} == {"int"}
    assert REGISTRY["attributes"][names.FINISH_REASONS] == "string[]"


def test_the_table_names_the_commit_it_is_from() -> None:
    """An update of the names has to change both."""
    assert REGISTRY["commit"].startswith(names.VERSION.split()[-1])
