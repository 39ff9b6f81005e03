"""Open findings that critics did not report again reach the judge."""

from signoff.review.critique import Critique, Overall
from signoff.review.finding import Finding, FindingStatus, Label
from signoff.review.findings import Ledger
from signoff.review.severity import Severity
from signoff.review.unreported import with_unreported


def finding(id_: str = "f1", **fields: object) -> Finding:
    """Returns a finding of claude that was not reported again."""
    values = {"label": Label.UNREPORTED, "flagged_by": ("claude",), **fields}
    return Finding(id_, "c", "r", Severity.HIGH, "a quote", "line 1", "wrong", **values)  # type: ignore[arg-type]


def critique(by: str, of: str = "c") -> Critique:
    return Critique(of, by, 2, Overall.PASS)


def ledger(*findings: Finding) -> Ledger:
    return Ledger({each.id: each for each in findings}, 2)


def test_a_finding_is_added_to_the_critique_of_its_critic() -> None:
    """The judge decides about it under its lasting id, whatever the critics report this time."""
    codex, claude = with_unreported([critique("codex"), critique("claude")], ledger(finding()))

    assert codex.issues == ()
    (issue,) = claude.issues
    assert (issue.id, issue.finding_id, issue.label) == ("f1", "f1", "unreported")
    assert (issue.evidence, issue.rule_id, issue.severity) == ("a quote", "r", Severity.HIGH)


def test_it_is_not_lost_if_its_critic_gave_no_critique() -> None:
    """Another critic of the constraint takes its place."""
    (codex,) = with_unreported([critique("codex")], ledger(finding()))

    assert [issue.id for issue in codex.issues] == ["f1"]


def test_closed_and_reported_findings_and_other_constraints_are_left_out() -> None:
    """They are decided, shown already, or not in the scope of the judge."""
    known = ledger(
        finding("f1", status=FindingStatus.DISMISSED),
        finding("f2", label=Label.PERSISTING),
    )
    critiques = [critique("claude")]

    assert with_unreported(critiques, known) == critiques
    assert with_unreported([critique("claude", of="d")], ledger(finding()))[0].issues == ()


def test_a_finding_is_added_once() -> None:
    """A judge that reads the rest before it decides looks twice."""
    once = with_unreported([critique("claude")], ledger(finding()))

    assert with_unreported(once, ledger(finding())) == once
