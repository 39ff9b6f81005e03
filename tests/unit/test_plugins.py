import pytest

from signoff import plugins
from signoff.errors import ConfigError
from signoff.runtime.ports import Capabilities


def test_what_is_named_is_loaded() -> None:
    """Everything that plugs in comes through this door."""
    assert plugins.load("signoff.core.outcome:Outcome").__name__ == "Outcome"


@pytest.mark.parametrize(
    "import_path", ["no_such_package:thing", "signoff.errors:Nothing", "", "a:"]
)
def test_what_cannot_be_loaded_is_a_mistake_in_the_settings(import_path: str) -> None:
    """The message has to name the entry, not our import machinery."""
    with pytest.raises(ConfigError, match="cannot load"):
        plugins.load(import_path)


def test_every_built_in_entry_can_be_loaded() -> None:
    """A table with a wrong name in it fails only when it is used."""
    parts = [
        part
        for each in plugins.notations()
        for part in (each.compile, each.layout, each.report, each.plan)
        if part
    ]
    for import_path in (*plugins.NOTATIONS.values(), *plugins.AGENT_KINDS.values(), *parts):
        assert plugins.load(import_path) is not None


def test_tables_include_what_other_packages_add() -> None:
    """The built-in entries are always there, whatever else is installed."""
    assert plugins.NOTATIONS.keys() <= {each.name for each in plugins.notations()}
    assert plugins.AGENT_KINDS.items() <= plugins.agent_kinds().items()


def test_every_kind_of_agent_declares_what_it_can_do() -> None:
    """One that declares nothing would be treated as a model that edits no files."""
    for location in plugins.AGENT_KINDS.values():
        assert isinstance(plugins.load(location).capabilities, Capabilities), location
