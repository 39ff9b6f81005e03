from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall
from signoff.review.pure.findings import Ledger, summarize_round

PASSAGES = [
    "The first passage is about one thing.",
    "The first passage is about one things.",
    "The second is something else.",
    "OMISSION",
    "",
    "***",
]
ISSUES = st.builds(
    CritiqueIssue,
    id=st.just("x"),
    rule_id=st.sampled_from(["r1", "r2"]),
    severity=st.sampled_from(Severity),
    location=st.sampled_from(["", "top", "end"]),
    finding=st.sampled_from(["is wrong", "is missing", "is too long"]),
    evidence=st.sampled_from(PASSAGES),
    behavior=st.sampled_from(["halt", "ignore"]),
    unverified=st.booleans(),
)
CRITIQUES = st.builds(
    Critique,
    constraint_id=st.sampled_from(["a", "b"]),
    reviewer=st.sampled_from(["claude", "codex"]),
    round=st.just(1),
    overall=st.sampled_from(Overall),
    issues=st.lists(ISSUES, max_size=5).map(tuple),
)
TEXTS = st.lists(st.sampled_from(PASSAGES), max_size=3).map("\n".join)
HISTORIES = st.lists(
    st.tuples(st.booleans(), st.lists(CRITIQUES, max_size=3), TEXTS), min_size=1, max_size=6
)

Histories = list[tuple[bool, list[Critique], str]]


@given(HISTORIES)
def test_any_history_of_critiques_adds_up(history: Histories) -> None:
    """Numbers that contradict each other would stop good runs and hide bad ones."""
    ledger, before, iteration = Ledger(), "", 0
    for next_round, critiques, text in history:
        iteration += next_round or iteration == 0
        ledger, labeled = ledger.record(
            iteration=iteration, critiques=critiques, artifact=text, previous_artifact=before
        )
        before = text

        issues = [issue for critique in labeled for issue in critique.issues]
        assert all(issue.finding_id in ledger.findings for issue in issues)
        assert all(
            i.label in (ledger.findings[i.finding_id].history[-1][1], "ignored") for i in issues
        )
        assert Ledger.from_json(ledger.to_json()) == ledger

    counted = [summarize_round(ledger, number) for number in range(1, ledger.iteration + 1)]
    assert [each["round"] for each in counted] == list(range(1, iteration + 1))
    assert sum(counted[-1]["open"].values()) == len(ledger.open())
    for finding in ledger.findings.values():
        words = [word for _, word in finding.history]
        assert finding.first <= finding.last <= iteration
        assert finding.returns == sum(word == "fixed" for word, _ in pairwise(words))
        assert (finding.status is FindingStatus.FIXED) == (words[-1] == "fixed")


@given(st.lists(CRITIQUES, max_size=4, unique_by=lambda c: (c.constraint_id, c.reviewer)), TEXTS)
def test_the_same_critiques_again_find_nothing_new(critiques: list[Critique], text: str) -> None:
    """A round that changes nothing must be recognized.

    Each critic has one complaint per rule and passage here: two complaints about one
    passage can be told apart only by their wording, which differs between critics.
    """
    usable = [_one_each(c) for c in critiques if c.overall is not Overall.ERROR]
    first, labeled = Ledger().record(iteration=1, critiques=usable, artifact=text)

    second, again = first.record(iteration=2, critiques=usable, artifact=text)

    assert set(second.findings) == set(first.findings)
    assert [_ids(each) for each in again] == [_ids(each) for each in labeled]
    assert {issue.label for each in again for issue in each.issues} <= {"still_open", "ignored"}


def _one_each(critique: Critique) -> Critique:
    places = {
        (i.rule_id, i.evidence.strip("*"), i.location if _omits(i) else ""): i
        for i in critique.issues
    }
    return replace(critique, issues=tuple(places.values()))


def _omits(issue: CritiqueIssue) -> bool:
    """Returns whether an issue is about an omission and quotes nothing."""
    return issue.omission or not issue.evidence.strip()


def _ids(critique: Critique) -> list[str]:
    return [issue.finding_id for issue in critique.issues]
