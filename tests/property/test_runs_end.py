from hypothesis import event, given, settings

from signoff.core.events import ROUNDS, lifts_of
from signoff.core.outcome import End, Outcome, Status
from signoff.core.run_state import Stage
from signoff.core.step import Edge, StepDef
from signoff.core.transitions import Lift, Move, Wait
from signoff.core.workflow import Workflow
from tests.property.workflows import Choose, Drive, choices, workflows

MOST_DECISIONS = 5_000
"""Far more than these small graphs can need; a run that makes more never ends."""

ENDS = {Status.COMPLETED, Status.FAILED, Status.LIMIT, Status.REJECTED} | {e.status for e in End}


@settings(max_examples=2000)
@given(workflows(), choices())
def test_every_run_ends_for_any_results_of_its_steps(workflow: Workflow, choose: Choose) -> None:
    """A loop without a bound would cost money without end."""
    drive = Drive(workflow, choose)

    for number, _ in enumerate(drive.steps()):
        assert number < MOST_DECISIONS

    assert drive.state.status in ENDS
    event(drive.state.status.value)


@settings(max_examples=1000)
@given(workflows(), choices())
def test_a_run_only_reaches_valid_states(workflow: Workflow, choose: Choose) -> None:
    """A process may be killed in any of these states, and another one resumes from it."""
    drive = Drive(workflow, choose)
    moves = 0

    for decision in drive.steps():
        moves += isinstance(decision, Move)
        stands_somewhere(drive)
        counts_within_bounds(drive)
        assert sum(drive.state.visits.values()) == moves + 1


@settings(max_examples=500)
@given(workflows(), choices())
def test_a_limit_that_was_lifted_is_not_asked_about_again_at_once(
    workflow: Workflow, choose: Choose
) -> None:
    """Otherwise a human who chose "continue" would be asked again at once."""
    drive = Drive(workflow, choose)
    lifted: set[str] = set()

    for decision in drive.steps():
        match decision:
            case Lift(edge_key=key):
                lifted.add(key)
            case Wait(edge_key=key):
                assert key not in lifted
            case Move():
                lifted.clear()
            case _:
                pass


def stands_somewhere(drive: Drive) -> None:
    state = drive.state
    assert state.step in drive.workflow.steps
    assert state.visit >= 1
    assert state.attempt >= 1
    if state.status is Status.RUNNING:
        # The update is held back exactly while a human has to decide about it.
        held_back = state.stage in (Stage.GATE, Stage.ESCALATED)
        assert (state.pending is not None) is held_back


def counts_within_bounds(drive: Drive) -> None:
    state, workflow = drive.state, drive.workflow
    ways = {way.key: way for way in workflow.edges if way.counted}
    lifted_at = {key: state.counters.get(lifts_of(key), 0) for key in ways}
    for key, count in state.counters.items():
        assert count >= 1
        if key in ways:
            bound = ways[key].bound
            assert ways[key].in_rounds if bound is None else count <= bound + lifted_at[key]
    if workflow.max_iterations is not None:
        lifted = 1 + state.counters.get(ROUNDS, 0)
        # A count may start again at 0, so only the bounds of what grants an iteration are certain.
        granting = workflow.edges.granting
        granted = sum((ways[key].bound or 0) + lifted_at[key] for key in granting)
        assert 1 <= state.iteration <= workflow.max_iterations * lifted + granted


@settings(max_examples=500)
@given(workflows())
def test_without_its_back_edges_a_graph_has_no_cycle(workflow: Workflow) -> None:
    """The promise that every run ends depends on it."""
    onward: dict[str, set[str]] = {step: set() for step in workflow.steps}
    for way in workflow.edges:
        if not way.back and isinstance(way.to, str) and way.to in workflow.steps:
            onward[way.step].add(way.to)

    while onward:
        last = {step for step, targets in onward.items() if not targets & onward.keys()}
        assert last, f"a cycle among {sorted(onward)}"
        onward = {step: targets for step, targets in onward.items() if step not in last}


@settings(max_examples=300)
@given(choices())
def test_loops_whose_counts_are_reset_still_end(choose: Choose) -> None:
    """The outer loop resets the count of the inner one, but not its own."""
    loop = Workflow(
        "nested",
        StepDef("a", next={Outcome.DEFAULT: "b"}),
        StepDef(
            "b",
            next={
                Outcome.ITERATE: Edge("b", bound=2, resets=True),
                Outcome.FAIL: Edge("a", bound=2, resets=True),
                Outcome.DEFAULT: "c",
            },
        ),
        StepDef("c", next={Outcome.OK: None, Outcome.DEFAULT: Edge("a", bound=3, resets=True)}),
    )
    drive = Drive(loop, choose)

    # Three times round the outer loop; within each, b goes to itself and to a at most twice.
    assert sum(isinstance(d, Move) for d in drive.steps()) <= 4 * (2 * 2 + 2 + 2) * 3
