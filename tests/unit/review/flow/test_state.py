"""What a judge gets: every scope after every order of critics and judges."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from signoff.review.flow.state import (
    LONGEST_QUESTION,
    NOTHING_REVIEWED,
    FlowState,
    after,
    get_critiques_for_scope,
    left_unadjudicated,
    stored,
)
from signoff.review.pure.critique import Critique, Overall
from signoff.review.pure.prompt_text import Guidance
from tests.tables import table

STEPS = ("first", "second", "accumulated", "previous", "all")
ORDERS = [order for length in (1, 2, 3, 4) for order in product(STEPS, repeat=length)]


def critic(state: Mapping[str, Any], name: str, number: int) -> dict[str, Any]:
    """Updates the state like a critique step."""
    critiques = [stored(Critique("tone", "ann", number, Overall.PASS), name)]
    return {
        "critiques_by_step": {**state["critiques_by_step"], name: critiques},
        "unadjudicated_critiques": [*state["unadjudicated_critiques"], *critiques],
        "last_critique_step": name,
    }


class Expected:
    """The documented rules, as simple as possible."""

    def __init__(self) -> None:
        self.of_step: dict[str, list[int]] = {}
        self.unseen: list[tuple[str, int]] = []
        self.last: str | None = None

    def critic(self, name: str, number: int) -> None:
        self.of_step[name] = [number]
        self.unseen.append((name, number))
        self.last = name

    def judge(self, scope: str) -> list[int]:
        if scope == "all":
            return [number for numbers in self.of_step.values() for number in numbers]
        seen = [number for _, number in self.unseen]
        kept = [(n, k) for n, k in self.unseen if scope == "previous" and n != self.last]
        self.unseen = kept
        return seen if scope == "accumulated" else self.of_step.get(self.last or "", [])


@table("order", ORDERS)
def test_every_scope_sees_and_clears_what_it_should(order: tuple[str, ...]) -> None:
    """A judge that sees too little approves too much; one that sees too much never ends."""
    state: Mapping[str, Any] = {**NOTHING_REVIEWED}
    expected = Expected()
    for number, name in enumerate(order):
        if name in ("first", "second"):
            expected.critic(name, number)
            state = after(state, critic(state, name, number))
            continue

        seen = get_critiques_for_scope(state, name)  # type: ignore[arg-type]  # one of the scopes

        assert [each.round for each in seen] == expected.judge(name)
        left = left_unadjudicated(state, name)  # type: ignore[arg-type]  # one of the scopes
        assert [each["round"] for each in left] == [k for _, k in expected.unseen]
        state = after(state, {"unadjudicated_critiques": left})


def test_a_long_question_is_repeated_in_part_and_its_answer_whole() -> None:
    """Ten questions that list hundreds of findings each would fill every later prompt."""
    answer = {"question": "q" * 50_000, "answer": "a" * 5_000}

    (guidance,) = FlowState({"human": [answer]}).guidance

    assert guidance == Guidance(f"{'q' * LONGEST_QUESTION}…", "a" * 5_000)
