"""Equal lines are findings of their own, and a decision covers one of them, whatever is edited."""

from __future__ import annotations

from collections import Counter
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.pure.artifact import ArtifactVersion
from signoff.review.pure.critique import (
    Adjudication,
    AdjudicationDecision,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
    Verdict,
)
from signoff.review.pure.finding import Finding
from signoff.review.pure.findings import Ledger
from signoff.review.pure.lasting_decision import LastingDecision, dismissed_before

BAD = "x = 1"
PATH = "code.py"
TEXTS = st.lists(st.sampled_from([BAD, BAD, "", "a()", "b()", "def f():"]), max_size=12)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["move", "edit", "copy", "delete", "insert"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=4,
)
Edits = list[tuple[str, int, int]]


def edited(lines: list[str], edits: Edits) -> list[str]:
    """Returns lines after some of them were moved, edited, copied, deleted or added."""
    result = list(lines)
    for kind, first, second in edits:
        if kind == "insert":
            result.insert(first % (len(result) + 1), ["a()", "c()", BAD][second % 3])
        elif result:
            index = first % len(result)
            line = result[index]
            if kind in ("move", "delete"):
                del result[index]
            if kind in ("move", "copy"):
                result.insert(second % (len(result) + 1), line)
            if kind == "edit":
                result[index] = f"{line}0"
    return result


def critique(lines: list[str], *, named: bool) -> Critique:
    """Returns what a check reports: every bad line, with or without its number."""
    found = [n for n, line in enumerate(lines, start=1) if line == BAD]
    issues = tuple(
        CritiqueIssue(
            f"c-{n}", "r", Severity.HIGH, f"line {n}" if named else "", "unused", BAD, path=PATH
        )
        for n in found
    )
    return Critique("c", "ruff", 1, Overall.FAIL, issues, paths=(PATH,))


def review(ledger: Ledger, round_: int, lines: list[str], *, named: bool) -> Ledger:
    recorded, _ = ledger.record(
        iteration=round_,
        critiques=[critique(lines, named=named)],
        artifact={PATH: "\n".join(lines)},
        certain={("c", "ruff")},
    )
    return recorded


def present(ledger: Ledger) -> list[Finding]:
    """Returns the findings that are open or dismissed, without decisions about what is gone."""
    return [
        each
        for each in ledger.findings.values()
        if each.status in (FindingStatus.OPEN, FindingStatus.DISMISSED) and each.last
    ]


def dismissed(findings: list[Finding], round_: int) -> Adjudication:
    decisions = tuple(
        AdjudicationDecision(each.id, finding_id=each.id, status=Pursuit.DISMISSED)
        for each in findings
    )
    return Adjudication(round_, Verdict.REWRITE, decisions)


def places(findings: list[Finding]) -> list[int]:
    return sorted(each.line for each in findings)


def bad_lines(lines: list[str]) -> list[int]:
    return [n for n, line in enumerate(lines, start=1) if line == BAD]


@given(TEXTS, EDITS, st.booleans(), st.data())
def test_a_decision_covers_one_line_between_rounds(
    lines: list[str], edits: Edits, named: bool, data: st.DataObject
) -> None:
    ledger = review(Ledger(), 1, lines, named=named)
    assert places(present(ledger)) == bad_lines(lines)
    chosen = data.draw(st.sets(st.sampled_from(present(ledger)))) if present(ledger) else set()
    ledger = ledger.apply(dismissed(list(chosen), 1))
    after = edited(lines, edits)

    ledger = review(ledger, 2, after, named=named)

    now = [each for each in present(ledger) if each.last == 2]
    assert places(now) == bad_lines(after), "each line has one finding"
    covered = [each for each in now if each.status is FindingStatus.DISMISSED]
    assert {each.id for each in covered} <= {each.id for each in chosen}
    if not edits:
        assert len(covered) == len(chosen)


@given(TEXTS, EDITS, st.booleans(), st.data())
def test_a_decision_covers_one_line_between_runs(
    lines: list[str], edits: Edits, named: bool, data: st.DataObject
) -> None:
    first = review(Ledger(), 1, lines, named=named)
    found = present(first)
    chosen = data.draw(st.sets(st.sampled_from(found))) if found else set()
    decisions = [LastingDecision.about_finding(each, "fine") for each in chosen]
    after = edited(lines, edits)
    version = ArtifactVersion({PATH: "\n".join(after)})

    known = dismissed_before(decisions, version, {}, date(2026, 1, 1))
    second = review(Ledger({each.id: each for each in known}), 1, after, named=named)

    now = [each for each in present(second) if each.last == 1]
    assert places(now) == bad_lines(after), "each line has one finding"
    covered = [each for each in now if each.status is FindingStatus.DISMISSED]
    assert {each.id for each in covered} <= {each.id for each in chosen}
    if not edits:
        assert places(covered) == places(list(chosen))


@given(TEXTS, EDITS, st.data())
def test_a_line_between_lines_of_its_own_is_never_confused(
    lines: list[str], edits: Edits, data: st.DataObject
) -> None:
    """What stays between the same lines, which no other one has, keeps its id in every run."""
    after = edited(lines, edits)
    one, two = review(Ledger(), 1, lines, named=True), review(Ledger(), 1, after, named=True)

    befores, afters = (Counter((f.before, f.after) for f in present(each)) for each in (one, two))
    ids = [{(f.before, f.after): f.id for f in present(each)} for each in (one, two)]

    unique = {key for key, n in befores.items() if n == 1 and afters[key] == 1}
    assert all(ids[0][key] == ids[1][key] for key in unique)
    if unique:
        key = data.draw(st.sampled_from(sorted(unique)))
        (finding,) = [each for each in present(one) if (each.before, each.after) == key]
        decision = LastingDecision.about_finding(finding, "fine")
        version = ArtifactVersion({PATH: "\n".join(after)})
        (known,) = dismissed_before([decision], version, {}, date(2026, 1, 1))
        assert (known.before, known.after) == key


STEPS = st.lists(st.tuples(st.sampled_from(["round", "run"]), EDITS), max_size=4)


def by_context(findings: list[Finding]) -> dict[tuple[str, str], Finding]:
    """Returns the findings between lines that no other one is between."""
    uses = Counter((each.before, each.after) for each in findings)
    return {key: each for each in findings if uses[key := (each.before, each.after)] == 1}


@given(TEXTS, STEPS, st.booleans(), st.data())
def test_decisions_hold_over_rounds_and_runs(
    lines: list[str], steps: list[tuple[str, Edits]], named: bool, data: st.DataObject
) -> None:
    """What is decided in one run is looked for in all later texts, however often they change.

    The file of decisions is not written again, so a decision of the first run has to be found
    in the text of the fourth one.
    """
    ledger, round_ = review(Ledger(), 1, lines, named=named), 1
    decided: dict[str, LastingDecision] = {}
    known_by_lines: set[tuple[str, str]] = set()
    for kind, edits in [*steps, ("run", [])]:
        now = [each for each in present(ledger) if each.last == round_]
        assert places(now) == bad_lines(lines), "each line has one finding"
        covered = {each.id for each in now if each.status is FindingStatus.DISMISSED}
        assert covered <= decided.keys(), "only what was decided is covered"
        still_open = [each for each in now if each.id not in covered]
        chosen = data.draw(st.sets(st.sampled_from(still_open), max_size=2)) if still_open else []
        decided |= {each.id: LastingDecision.about_finding(each, "fine") for each in chosen}
        ledger = ledger.apply(dismissed(list(chosen), round_))
        before = by_context([each for each in present(ledger) if each.last == round_])
        known_by_lines |= {key for key, each in before.items() if each.id in {c.id for c in chosen}}

        lines = edited(lines, edits)
        if kind == "round":
            round_ += 1
            ledger = review(ledger, round_, lines, named=named)
        else:
            version = ArtifactVersion({PATH: "\n".join(lines)})
            known = dismissed_before(decided.values(), version, {}, date(2026, 1, 1))
            round_, ledger = 1, review(Ledger({f.id: f for f in known}), 1, lines, named=named)

        after = by_context([each for each in present(ledger) if each.last == round_])
        if kind == "round":
            same = {key: (before[key].status, after[key].status) for key in before.keys() & after}
            assert all(was is is_now for was, is_now in same.values()), "nobody else took it"
            assert all(before[key].id == after[key].id for key in same)
        else:
            again = [after[key].status for key in known_by_lines & after.keys()]
            assert all(each is FindingStatus.DISMISSED for each in again), "no decision is lost"
