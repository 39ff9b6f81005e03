from pydantic import TypeAdapter

from signoff.agents.findings import Source, build_critique
from signoff.core.severity import Severity
from signoff.flows.judging_file import SeverityName


def test_every_severity_has_a_letter_of_its_own() -> None:
    """Two severities with one letter would be one bar in the plot of a run."""
    assert len({severity.letter for severity in Severity}) == len(Severity)


def test_files_and_checks_know_every_severity() -> None:
    """A severity that only reviews knew would become HIGH in a check, and an error in a file."""
    source = Source("spelling", "HIGH", "text")

    found = build_critique(
        [{"finding": "x", "severity": each.lower()} for each in Severity], source
    )

    assert [issue["severity"] for issue in found["issues"]] == list(Severity)
    assert [TypeAdapter(SeverityName).validate_python(each.lower()) for each in Severity] == list(
        Severity
    )
