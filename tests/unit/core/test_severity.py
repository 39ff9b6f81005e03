import pytest
from pydantic import TypeAdapter

from signoff.agents.check import Source, build_critique
from signoff.core.severity import Severity
from signoff.review.flow.sections import BehaviorSection, SeverityName


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


def test_every_severity_has_the_documented_defaults() -> None:
    """Flows that set nothing rely on them; a severity without any would fail when reported."""
    assert {each.value: tuple(each.defaults) for each in Severity} == {
        "CRITICAL": ("halt", True, False),
        "HIGH": ("halt", True, False),
        "MEDIUM": ("continue", False, True),
        "LOW": ("ignore", False, True),
    }


def test_worse_severities_are_named_by_the_mildest_of_them() -> None:
    """A policy such as `no_critical` must not approve while something worse is open."""
    worst, *_, mildest = Severity

    assert worst.or_worse == (worst,)
    assert mildest.or_worse == tuple(Severity)


@pytest.mark.parametrize("each", Severity)
def test_a_flow_can_set_the_behavior_of_every_severity(each: Severity) -> None:
    """A severity that only reviews knew could not be configured."""
    section = BehaviorSection.model_validate({each.value: "Escalate"})

    assert section.model_dump(exclude_none=True) == {each.value.lower(): "escalate"}


@pytest.mark.parametrize("text", ["urgent", "", None])
def test_an_unknown_severity_blocks_approval(text: object) -> None:
    """A typo of a critic must not let a text through."""
    assert Severity.read(text).defaults.blocks


def test_only_unambiguous_words_stand_for_a_severity() -> None:
    """A critic is asked about any other word; a guess could let a text through."""
    words = ["Blocker", "major", "moderate", "minor", "nit", "info", " high ", "serious", "error"]

    names = [Severity.named(word) for word in words]

    assert names == ["CRITICAL", "HIGH", "MEDIUM", "LOW", "LOW", "LOW", "HIGH", None, None]
