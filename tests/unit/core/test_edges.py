import pytest

from signoff.core.edges import DEFAULT_BOUND, ERROR, EdgeTable, edge_table, gate_name
from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, Gate, GateOption, StepDef

OK, FAIL, ITERATE, DEFAULT = Outcome.OK, Outcome.FAIL, Outcome.ITERATE, Outcome.DEFAULT


def table(*steps: StepDef) -> EdgeTable:
    return edge_table(steps, steps[0].id)


def loops(*steps: StepDef) -> set[str]:
    """The edges found to close a loop."""
    return {edge.key for edge in table(*steps) if edge.back}


def test_every_way_out_of_a_step_is_found() -> None:
    """Outcomes, errors and the options of its gate alike."""
    gate = Gate("?", [GateOption("yes", None), GateOption("no", Edge("a", 2))])
    steps = [
        StepDef("a", next={FAIL: "b", ITERATE: End.REJECTED}, on_error="b", gate=gate),
        StepDef("b", next={OK: None}),
    ]

    found = table(*steps)

    assert [(w.key, w.to) for w in found.from_step("a")] == [
        ("a/fail", "b"),
        ("a/iterate", End.REJECTED),
        ("a/error", "b"),
        ("a/gate:yes", None),
        ("a/gate:no", "a"),
    ]
    assert [w.key for w in found] == [*(w.key for w in found.from_step("a")), "b/ok"]
    assert list(found.from_step("nowhere")) == []


def test_an_outcome_is_looked_up_by_its_own_edge_then_by_the_default() -> None:
    """`_default` is for outcomes that are not named, and for nothing else."""
    edges = table(
        StepDef("a", next={OK: "b", DEFAULT: None}), StepDef("b", next={OK: None}, on_error="a")
    )

    assert edges.find("a", OK) is edges.get("a", "ok")
    assert edges.find("a", FAIL) is edges.get("a", "_default")
    assert edges.find("b", FAIL) is None
    assert edges.get("b", ERROR) is not None
    assert edges.get("a", ERROR) is None
    assert edges.get("a", gate_name("yes")) is None


def test_an_edge_back_to_an_earlier_step_loops() -> None:
    """Over errors and gates as well as over outcomes."""
    gate = Gate("?", [GateOption("again", "a"), GateOption("done", None)])

    assert loops(
        StepDef("a", next={OK: "b"}),
        StepDef("b", next={OK: "c", FAIL: "a"}, on_error="a"),
        StepDef("c", gate=gate),
    ) == {"b/fail", "b/error", "c/gate:again"}


def test_two_ways_to_one_step_are_no_loop() -> None:
    """A diamond meets again without going back."""
    assert not loops(
        StepDef("a", next={OK: "b", FAIL: "c"}),
        StepDef("b", next={OK: "d"}),
        StepDef("c", next={OK: "d"}),
        StepDef("d", next={OK: None}),
    )


def test_a_long_chain_is_walked_without_recursion() -> None:
    """Ten thousand steps must not exhaust the stack."""
    chain = [StepDef(str(n), next={OK: str(n + 1)}) for n in range(10_000)]

    assert loops(*chain, StepDef("10000", next={OK: None, ITERATE: "0"})) == {"10000/iterate"}


def test_a_loop_without_a_bound_gets_one() -> None:
    """Every loop ends."""
    (edge, _) = table(StepDef("a", next={ITERATE: "a", OK: None}))

    assert edge.counted
    assert edge.bound == DEFAULT_BOUND


def test_a_loop_that_begins_a_round_is_bounded_by_the_limit_on_rounds() -> None:
    """Fifty rounds that were allowed must not end after the twenty every other loop gets."""
    step = StepDef("a", next={ITERATE: Edge("a", starts_iteration=True), OK: None})
    (limited, _) = edge_table([step], "a", max_iterations=50)
    (free, _) = edge_table([step], "a")

    assert (limited.bound, free.bound) == (None, DEFAULT_BOUND)
    assert limited.counted


@pytest.mark.parametrize("outcome", [ITERATE, OK], ids=["closes the loop", "leads into it"])
def test_a_bound_counts_wherever_its_author_put_it(outcome: Outcome) -> None:
    """Three repairs at most means three, also when the bound is on the edge to the repair."""
    bounded = Edge("fix" if outcome is OK else "check", bound=3)
    edges = table(
        StepDef("check", next={OK: bounded if outcome is OK else "fix", FAIL: None}),
        StepDef("fix", next={ITERATE: bounded if outcome is ITERATE else "check"}),
    )

    (edge,) = [edge for edge in edges if edge.definition is bounded]

    assert edge.back is (outcome is ITERATE)
    assert edge.counted
    assert edge.bound == 3
