"""What a judge is given: every scope after every order of critics and judges."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from signoff.flows.state import (
    LONGEST_QUESTION,
    NOTHING_REVIEWED,
    FlowState,
    after,
    critiques_in_scope,
    left_unadjudicated,
)

STEPS = ("first", "second", "accumulated", "previous", "all")
ORDERS = [order for length in (1, 2, 3, 4) for order in product(STEPS, repeat=length)]


def critic(state: Mapping[str, Any], name: str, number: int) -> dict[str, Any]:
    """Does to the state what a critique step does."""
    made = [{"step": name, "number": number}]
    return {
        "critiques_by_step": {**state["critiques_by_step"], name: made},
        "unadjudicated_critiques": [*state["unadjudicated_critiques"], *made],
        "last_critique_step": name,
    }


class Told:
    """The rules in the words of the documentation, kept as plainly as possible."""

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
            return [number for made in self.of_step.values() for number in made]
        seen = [(n, k) for n, k in self.unseen if scope == "accumulated" or n == self.last]
        self.unseen = [each for each in self.unseen if each not in seen]
        return [number for _, number in seen]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_every_scope_sees_and_clears_what_it_should(order: tuple[str, ...]) -> None:
    """A judge that sees too little approves too much; one that sees too much never ends."""
    state: Mapping[str, Any] = {**NOTHING_REVIEWED}
    told = Told()
    for number, name in enumerate(order):
        if name in ("first", "second"):
            told.critic(name, number)
            state = after(state, critic(state, name, number))
            continue

        seen = critiques_in_scope(state, name)  # type: ignore[arg-type]  # one of the scopes

        assert [each["number"] for each in seen] == told.judge(name)
        left = left_unadjudicated(state, name)  # type: ignore[arg-type]  # one of the scopes
        assert [each["number"] for each in left] == [k for _, k in told.unseen]
        state = after(state, {"unadjudicated_critiques": left})


def test_a_long_question_is_repeated_in_part_and_its_answer_whole() -> None:
    """Ten questions that list hundreds of findings each would fill every later prompt."""
    said = {"question": "q" * 50_000, "answer": "a" * 5_000}

    (told,) = FlowState({"human": [said]}).guidance

    assert told == f"{'q' * LONGEST_QUESTION}…\n{'a' * 5_000}"
