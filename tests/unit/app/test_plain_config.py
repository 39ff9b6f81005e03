import pytest

from signoff.app.config_schema import read_config
from signoff.app.plain_config import read_plain
from signoff.documents.yaml_text import Document, read_yaml
from signoff.errors import Problem
from tests.tables import table

PLAIN = [
    "agents: {claude: {kind: scripted, file: script.yaml}}\n",
    "agents: {a: {file: x, retries: 0, kind: command, argv: [1, {b: [2.5, null]}], fallback: b}}\n",
    "version: 1\nagents:\n  a:\n    concurrency: 2\n",
    "agents: {gpt-4.1: {model: m, since: 2020-01-01}}\nroles: {critic: gpt-4.1}\n",
    "workflows: [a, b]\npass_env: []\ndatabase: other.db\nlog_file: x.log\n",
    "roles: {}\nagents: {}\n",
]
OTHER = [
    "version: 2\n",
    "version: true\n",
    "agents:\n",
    "agents: {a: }\n",
    "agents: {a: {}}\n",
    "agents: {a: {kind: ''}}\n",
    "agents: {a: {kind: 1}}\n",
    "agents: {a: {concurrency: 0}}\n",
    "agents: {a: {concurrency: true}}\n",
    "agents: {a: {retries: -1}}\n",
    "agents: {a: {retries: 1.0}}\n",
    "agents: {a: {fallback: null}}\n",
    "agents: {a: {rate: 10/min}}\n",
    "agents: {a: {price: {in: 1, out: 2}}}\n",
    "agents: [a]\n",
    "agents: {a: b}\n",
    "roles: {a: 1}\n",
    "workflows: a\n",
    "workflows: [1]\n",
    "database: ''\n",
    "limits: {usd: 5}\n",
    "unknown: 1\n",
    "- a\n",
    "text\n",
]


def document(text: str) -> Document:
    read = read_yaml(text, "config.yaml", [])
    assert read is not None
    return read


@pytest.mark.parametrize("text", PLAIN)
def test_plain_settings_are_those_of_the_schema(text: str) -> None:
    """A command must not depend on which of the two has read the file."""
    problems: list[Problem] = []

    plain, checked = read_plain(document(text)), read_config(document(text), problems)

    assert plain is not None
    assert list(plain.items()) == list(checked.items())
    assert problems == []


@table("text", OTHER)
def test_everything_else_is_left_to_the_schema(text: str) -> None:
    """Only the schema reports mistakes, converts values and knows the sections of notations."""
    assert read_plain(document(text)) is None
