from itertools import product

import pytest

from signoff.skills.qr import QRVerdict, Severity, blocking, judge
from signoff.skills.types import QRStatus
from tests.tables import table

ITERATIONS = range(1, 7)
SEVERITIES = ("MUST", "SHOULD", "COULD")
STATUSES = ("TODO", "PASS", "FAIL")

# One letter for each iteration: Redo, Verify, Ask or proceed (.), written down by hand from the
# specification and not computed.
VERDICTS = {
    ("MUST", "TODO"): "VVVVAA",
    ("MUST", "PASS"): "......",
    ("MUST", "FAIL"): "RRRRAA",
    ("SHOULD", "TODO"): "VVVV..",
    ("SHOULD", "PASS"): "......",
    ("SHOULD", "FAIL"): "RRRR..",
    ("COULD", "TODO"): "VV....",
    ("COULD", "PASS"): "......",
    ("COULD", "FAIL"): "RR....",
}
VERDICTS_IF_FAIL_IS_REPORTED = {
    ("MUST", "TODO"): "VVVVAA",
    ("MUST", "PASS"): "VVVVAA",
    ("MUST", "FAIL"): "RRRRAA",
    ("SHOULD", "TODO"): "VVVVAA",
    ("SHOULD", "PASS"): "VVVVAA",
    ("SHOULD", "FAIL"): "RRRR..",
    ("COULD", "TODO"): "VVVVAA",
    ("COULD", "PASS"): "VVVVAA",
    ("COULD", "FAIL"): "RR....",
}
ACTIONS = {"R": "redo", "V": "verify", "A": "ask", ".": "proceed"}
WORST_FIRST = "ARV."
OTHER_WORDS = (None, "pass", "PASS", "ok", "", "failure is not an option", "unclear")
FAIL_WORDS = ("fail", "FAIL", " Fail ", QRStatus.FAIL)


def verdict(letter: str) -> QRVerdict:
    """Returns the verdict for a letter of the tables."""
    status = QRStatus.PASS if letter == "." else QRStatus.FAIL
    return QRVerdict(status, ACTIONS[letter])  # type: ignore[arg-type]  # an equal text will do


@pytest.mark.parametrize(
    ("iteration", "severities"),
    [
        (1, {"MUST", "SHOULD", "COULD"}),
        (2, {"MUST", "SHOULD", "COULD"}),
        (3, {"MUST", "SHOULD"}),
        (4, {"MUST", "SHOULD"}),
        (5, {"MUST"}),
        (6, {"MUST"}),
        (1000, {"MUST"}),
    ],
)
def test_later_iterations_block_on_less(iteration: int, severities: set[str]) -> None:
    """A loop of work and review has to end."""
    found = blocking(iteration)

    assert isinstance(found, frozenset)
    assert found == severities
    assert all(isinstance(each, Severity) for each in found)


def test_a_project_may_have_another_table() -> None:
    """Some teams never let go of what should be done."""
    table = {1: tuple(Severity), 2: (Severity.MUST,)}

    assert [len(blocking(iteration, table)) for iteration in ITERATIONS] == [3, 1, 1, 1, 1, 1]
    assert judge([{"id": "a", "status": "FAIL"}], 2, table=table) == verdict(".")


@table(("iteration", "severity", "status"), product(ITERATIONS, SEVERITIES, STATUSES))
def test_the_verdict_on_one_item(iteration: int, severity: str, status: str) -> None:
    """The specification, row by row."""
    entries = {"id": "a", "severity": severity, "status": status}
    found = {word: judge([entries], iteration, word) for word in (*OTHER_WORDS, *FAIL_WORDS)}

    plain = verdict(VERDICTS[severity, status][iteration - 1])
    if_reported = verdict(VERDICTS_IF_FAIL_IS_REPORTED[severity, status][iteration - 1])
    assert {word: found[word] for word in OTHER_WORDS} == dict.fromkeys(OTHER_WORDS, plain)
    assert {word: found[word] for word in FAIL_WORDS} == dict.fromkeys(FAIL_WORDS, if_reported)


@pytest.mark.parametrize("iteration", ITERATIONS)
def test_the_verdict_on_several_items_is_the_worst_of_them(iteration: int) -> None:
    """An item that passes hides no other; one that does not block vetoes nothing."""
    kinds = [*product(SEVERITIES, STATUSES)]
    for pair in product(kinds, kinds):
        items = [
            {"id": str(number), "severity": severity, "status": status}
            for number, (severity, status) in enumerate(pair)
        ]
        letters = [VERDICTS[kind][iteration - 1] for kind in pair]
        plain = min(letters, key=WORST_FIRST.index)
        # What was reported is explained by any failure that is recorded, even a harmless one.
        explained = any(status == "FAIL" for _, status in pair)
        unexplained = "A" if iteration >= 5 else "V"

        assert judge(items, iteration) == verdict(plain), pair
        assert judge(items, iteration, "pass") == verdict(plain), pair
        reported = plain if explained else unexplained
        assert judge(items, iteration, "fail") == verdict(reported), pair
