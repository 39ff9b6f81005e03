"""Open findings that critics did not report again reach the judge."""

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus, Label
from signoff.review.critique import Critique, Overall
from signoff.review.finding import Finding
from signoff.review.findings import Ledger, with_not_reported


def finding(id_: str = "f1", **fields: object) -> Finding:
    """Returns a finding of claude that was not reported again."""
    values = {
        "label": Label.STILL_OPEN,
        "not_reported_again": True,
        "flagged_by": ("claude",),
        **fields,
    }
    return Finding(id_, "c", "r", Severity.HIGH, "a quote", "line 1", "wrong", **values)  # type: ignore[arg-type]


def critique(by: str, of: str = "c") -> Critique:
    return Critique(of, by, 2, Overall.PASS)


def ledger(*findings: Finding) -> Ledger:
    return Ledger({each.id: each for each in findings}, 2)


def test_a_finding_is_added_to_the_critique_of_its_critic() -> None:
    """The judge decides about it under its lasting id, whatever the critics report this time."""
    codex, claude = with_not_reported([critique("codex"), critique("claude")], ledger(finding()))

    assert codex.issues == ()
    (issue,) = claude.issues
    assert (issue.id, issue.finding_id, issue.label) == ("f1", "f1", "still_open")
    assert issue.not_reported_again
    assert (issue.evidence, issue.rule_id, issue.severity) == ("a quote", "r", Severity.HIGH)


def test_it_is_not_lost_if_its_critic_gave_no_critique() -> None:
    """Another critic of the constraint takes its place."""
    (codex,) = with_not_reported([critique("codex")], ledger(finding()))

    assert [issue.id for issue in codex.issues] == ["f1"]


def test_closed_and_reported_findings_and_other_constraints_are_left_out() -> None:
    """They are decided, shown already, or not in the scope of the judge."""
    known = ledger(
        finding("f1", status=FindingStatus.DISMISSED),
        finding("f2", not_reported_again=False),
    )
    critiques = [critique("claude")]

    assert with_not_reported(critiques, known) == critiques
    assert with_not_reported([critique("claude", of="d")], ledger(finding()))[0].issues == ()


def test_a_finding_is_added_once() -> None:
    """A judge that reads the rest before it decides looks twice."""
    once = with_not_reported([critique("claude")], ledger(finding()))

    assert with_not_reported(once, ledger(finding())) == once
