"""Exports a run in one of the formats of the plug-in table."""

from __future__ import annotations

from collections.abc import Iterator

from signoff import plugins
from signoff.app.history import record_of
from signoff.app.project import Project
from signoff.errors import ConfigError, UnknownName
from signoff.exports.run_record import ExportOptions


def export(project: Project, format_name: str, run: str | None = None) -> Iterator[str]:
    """Returns a run, or the latest one, as a document in parts; raises `UnknownName`."""
    found = plugins.export(format_name)
    if found is None:
        raise UnknownName("format", format_name, sorted(plugins.export_paths()))
    return found.write(
        record_of(project, project.run(run)), ExportOptions(project.settings.log_content)
    )


def send_trace(project: Project, run: str | None = None) -> int:
    """Sends the trace of a run to the collector of the `OTEL_` variables; returns its spans.

    Raises `ConfigError` if the extra is not installed or no collector took the trace.
    """
    from signoff.exports.otel import all_signals
    from signoff.observers.otel import OtelExport, otlp_exporters
    from signoff.telemetry.otel_signals import OtelSpan

    signals = all_signals(
        record_of(project, project.run(run)), ExportOptions(project.settings.log_content)
    )
    sending = OtelExport(otlp_exporters(None), report=False)
    delivered = sending.deliver(signals)
    sending.close()
    if not delivered:
        raise ConfigError(
            "no collector took the trace; start one, or set OTEL_EXPORTER_OTLP_ENDPOINT to the "
            "address of yours, such as http://localhost:4318"
        )
    return sum(isinstance(each, OtelSpan) for each in signals)
