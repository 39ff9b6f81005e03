"""Exports a run in one of the formats of the plug-in table."""

from __future__ import annotations

from collections.abc import Iterator

from signoff import plugins
from signoff.app.history import record_of
from signoff.app.project import Project
from signoff.errors import UnknownName
from signoff.exports.run_record import ExportOptions


def export(
    project: Project, format_name: str, run: str | None = None, *, content: bool = False
) -> Iterator[str]:
    """Returns a run, or the latest one, as a document in parts; raises `UnknownName`."""
    found = plugins.export(format_name)
    if found is None:
        raise UnknownName("format", format_name, sorted(plugins.export_paths()))
    return found.write(record_of(project, project.run(run)), ExportOptions(content))
