from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.finding import Finding
from signoff.review.findings import Ledger
from signoff.review.policy import Stop, find_stop_reason, to_fix_in_a_row


@dataclass(frozen=True)
class Rules:
    plateau: int | None = None
    oscillation: int | None = None
    thrashing: int | None = None
    only_new: int | None = None


def ledger(*findings: Finding) -> Ledger:
    return Ledger({each.id: each for each in findings}, 3)


def found(
    named: str = "f1",
    *,
    returns: int = 0,
    status: FindingStatus = FindingStatus.OPEN,
    first: int = 1,
) -> Finding:
    return Finding(
        named, "c", "r", Severity.HIGH, "q", "", "", status, first=first, last=3, returns=returns
    )


def rounds(*counted: Mapping[str, int]) -> list[dict[str, Any]]:
    quiet = dict.fromkeys(("new", "still_open", "fixed", "back", "caused_by_fix"), 0)
    return [
        {
            "round": number,
            "open": {each.value: summary.get(each.value, 0) for each in Severity},
            **quiet,
            **{key: value for key, value in summary.items() if key in quiet},
        }
        for number, summary in enumerate(counted, 1)
    ]


def stop(
    rules: Rules,
    counted: Sequence[Mapping[str, int]] = (),
    pursued: Sequence[Sequence[str]] = (),
    *findings: Finding,
) -> Stop | None:
    return find_stop_reason(rounds(*counted), ledger(*(findings or (found(),))), pursued, rules)


def test_without_rules_nothing_ends_a_run() -> None:
    """A plain flow is bounded by its iterations and by nothing else."""
    stuck = [{"HIGH": 3}] * 10

    assert stop(Rules(), stuck, [["f1"]] * 10, found(returns=9)) is None


@pytest.mark.parametrize(
    ("high", "ends"),
    [
        ([3], False),
        ([3, 3], False),
        ([3, 3, 3], True),
        ([3, 3, 2], False),
        ([3, 2, 3], False),
        ([3, 2, 3, 2], True),
        ([5, 4, 3, 2, 1], False),
        ([1, 2, 3], True),
        ([1, 5, 4, 3], True),
    ],
)
def test_a_plateau_is_so_many_rounds_no_better_than_the_best_before(
    high: list[int], ends: bool
) -> None:
    """A run that gets better now and then must not be cut off, one that is stuck must."""
    reason = stop(Rules(plateau=2), [{"HIGH": each} for each in high])

    assert (reason is not None) is ends


def test_a_plateau_weighs_the_worst_findings_first() -> None:
    """Five new trifles for one critical finding less is progress."""
    better = [{"CRITICAL": 1}, {"HIGH": 1, "LOW": 5}]
    worse = [{"HIGH": 1, "LOW": 5}, {"CRITICAL": 1}]

    assert stop(Rules(plateau=1), better) is None
    assert stop(Rules(plateau=1), worse) is not None


def test_a_plateau_is_explained_with_its_numbers_and_findings() -> None:
    """A human has to decide what to do about it."""
    reason = stop(Rules(plateau=1), [{"HIGH": 2}, {"HIGH": 2, "LOW": 1}])

    assert reason == Stop(
        "plateau",
        "no better than before (round 1: 2 HIGH, round 2: 2 HIGH 1 LOW); "
        "open: f1 (HIGH c, rounds 1-3)",
    )


def test_oscillation_is_a_finding_that_came_back_so_often() -> None:
    """Two constraints that undo each other's fixes never end by themselves."""
    rules = Rules(oscillation=2)

    assert stop(rules, [], [], found(returns=1)) is None
    assert stop(rules, [], [], found(returns=2)) == Stop(
        "oscillation", "fixed and back again: f1 (HIGH c, rounds 1-3, back 2 times)"
    )


@pytest.mark.parametrize(
    "status", [FindingStatus.FIXED, FindingStatus.DISMISSED, FindingStatus.IGNORED]
)
def test_a_finding_that_is_not_open_stops_nothing(status: FindingStatus) -> None:
    """A minor finding that comes and goes must not end a run."""
    ended = found("f2", returns=9, status=status)

    assert stop(Rules(oscillation=1, thrashing=1), [], [["f2"]], found(), ended) is None


def test_thrashing_is_a_finding_pursued_so_many_times_in_a_row() -> None:
    """An author that cannot fix something will not learn it in the tenth round."""
    rules = Rules(thrashing=3)

    assert stop(rules, [], [["f1"], ["f1"]]) is None
    assert stop(rules, [], [["f1"], [], ["f1"], ["f1"]]) is None
    assert stop(rules, [], [["f9"], ["f1"], ["f1", "f9"], ["f1"]]) == Stop(
        "thrashing", "sent to be fixed 3 times in a row and still open: f1 (HIGH c, rounds 1-3)"
    )


def test_only_new_findings_round_after_round_end_a_run() -> None:
    """Critics that always find something else would keep a run going forever."""
    fresh = {"HIGH": 2, "new": 1, "caused_by_fix": 1, "fixed": 2}
    rules = Rules(only_new=2)

    assert stop(rules, [fresh, fresh]) is None, "in the first round everything is new"
    assert stop(rules, [fresh, fresh, fresh]) == Stop(
        "only_new",
        "only new findings: 2 in round 2, 2 in round 3",
    )


@pytest.mark.parametrize(
    "old",
    [
        {"HIGH": 2, "new": 1, "still_open": 1},
        {"HIGH": 2, "new": 1, "back": 1},
        {"HIGH": 2, "new": 1},
        {},
    ],
)
def test_a_round_with_anything_older_in_it_is_not_only_new(old: dict[str, int]) -> None:
    """A finding that was not reviewed this time is still open, and old."""
    fresh = {"HIGH": 1, "new": 1}

    assert stop(Rules(only_new=2), [fresh, fresh, old]) is None
    assert stop(Rules(only_new=2), [fresh, old, fresh]) is None


def test_the_rule_that_names_the_culprit_comes_before_the_one_that_only_counts() -> None:
    """Of two true reasons the more useful one is reported."""
    rules = Rules(plateau=1, oscillation=1, thrashing=1, only_new=1)

    reason = stop(rules, [{"HIGH": 1}, {"HIGH": 1}], [["f1"]], found(returns=1))

    assert reason is not None
    assert reason.rule == "oscillation"


def test_findings_pursued_again_as_often_as_the_threshold_are_returned() -> None:
    """With the threshold 2, the third adjudication in a row asks a human."""
    assert to_fix_in_a_row([["a"], ["a"]], 2) == []
    assert to_fix_in_a_row([["a", "b"], ["b", "a"], ["a", "c", "b"]], 2) == ["a", "b"]
    assert to_fix_in_a_row([["a"], ["b"], ["a"]], 1) == []
    assert to_fix_in_a_row([["z"], ["a"], ["a"], ["a"]], 2) == ["a"]
    assert to_fix_in_a_row([], 1) == []
