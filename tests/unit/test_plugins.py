from pathlib import Path

import pytest

from signoff import plugins
from signoff.core.errors import ConfigError
from signoff.runtime.ports import Capabilities


@pytest.mark.parametrize(
    "import_path", ["no_such_package:thing", "signoff.core.errors:Nothing", "", "a:"]
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
    tables = (plugins.NOTATIONS, plugins.AGENT_KINDS, plugins.EXPORTS, plugins.OBSERVERS)
    for import_path in (*(path for table in tables for path in table.values()), *parts):
        assert plugins.load(import_path) is not None


def test_tables_include_what_other_packages_add() -> None:
    """The built-in entries are always there, whatever else is installed."""
    assert plugins.NOTATIONS.keys() <= {each.name for each in plugins.notations()}
    assert plugins.AGENT_KINDS.items() <= plugins.paths("agents").items()


def test_every_kind_of_agent_declares_what_it_can_do() -> None:
    """One that declares nothing would be treated as a model that edits no files."""
    for location in plugins.AGENT_KINDS.values():
        assert isinstance(plugins.load(location).capabilities, Capabilities), location


def test_another_package_adds_a_format_of_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A company's own format needs no change of signoff."""
    install(tmp_path, "Export('lines', 'One line.', lambda record, options: iter([record.name]))")
    monkeypatch.syspath_prepend(tmp_path)

    found = plugins.export("lines")

    assert found is not None
    assert found.help == "One line."
    assert plugins.paths("exports").keys() == {"lines", *plugins.EXPORTS}
    assert plugins.export("unknown") is None


def test_what_is_no_export_is_a_mistake_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the entry point instead of failing in the middle of a document."""
    install(tmp_path, "Export('other', '', iter)")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ConfigError, match="is not of type Export with the name 'lines'"):
        plugins.export("lines")


def install(folder: Path, value: str) -> None:
    """Puts a package into a folder that registers a format of export."""
    module = f"export_of_{folder.name}"
    (folder / f"{module}.py").write_text(
        f"from signoff.views.exports.run_record import Export\nEXPORT = {value}\n"
    )
    metadata = folder / "lines-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: lines\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[signoff.exports]\nlines = {module}:EXPORT\n"
    )
