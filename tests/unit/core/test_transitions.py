import itertools
from typing import Any, get_args

import pytest

from signoff.core.edges import DEFAULT_BOUND, ResolvedEdge
from signoff.core.errors import EngineError, UnmappedOutcome
from signoff.core.events import ROUNDS
from signoff.core.outcome import End, Outcome, Status
from signoff.core.run_state import Stage
from signoff.core.step import Condition, Edge, Gate, GateOption, StepDef
from signoff.core.stop_reason import (
    EdgeLimit,
    ErrorInfo,
    PreconditionFailed,
    Rejected,
    RoundLimit,
    StepDecided,
    StepError,
)
from signoff.core.transitions import (
    TABLE,
    Chosen,
    ConditionsBroken,
    ConditionsMet,
    Fact,
    FellShort,
    Finish,
    Lift,
    Limit,
    Move,
    Position,
    Proceed,
    Raised,
    Retry,
    Returned,
    Wait,
    answers,
    decide,
    escalation_options,
    leave,
)
from signoff.core.workflow import Workflow
from tests.tables import table

OK, FAIL, SKIP, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.SKIP, Outcome.ITERATE
CHECKED = [Condition("c", lambda ctx: True, "not so")]
SHIP = Gate("Ship?", [GateOption("yes", None), GateOption("again", Edge("a", bound=2))])

BOOM = ErrorInfo("ValueError", "boom")

FACTS: dict[type[Fact], Fact] = {
    ConditionsMet: ConditionsMet(),
    ConditionsBroken: ConditionsBroken("not so"),
    Returned: Returned(OK),
    FellShort: FellShort("too short"),
    Raised: Raised(BOOM),
    Chosen: Chosen("yes"),
}


def flow(*steps: StepDef, **settings: Any) -> Workflow:
    return Workflow("flow", *steps, **settings)


def at(workflow: Workflow, stage: Stage, **more: Any) -> Position:
    where: dict[str, Any] = {"step": "a", "attempt": 1, "iteration": 1, "counters": {}}
    return Position(workflow, stage=stage, **{**where, **more})


def edge(workflow: Workflow, step: str, name: str) -> ResolvedEdge:
    found = workflow.edges.get(step, name)
    assert found is not None
    return found


PLAIN = flow(StepDef("a", next={OK: "b", FAIL: None}), StepDef("b", next={OK: None}))


def test_every_fact_is_tried_below() -> None:
    """A fact without an example would leave its rows untested."""
    assert set(FACTS) == set(get_args(Fact))


@pytest.mark.parametrize(
    ("stage", "fact"),
    [pair for pair in itertools.product(Stage, FACTS) if pair not in TABLE],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_fact_that_has_no_place_at_a_stage_is_refused(stage: Stage, fact: type[Fact]) -> None:
    """A silent step forward is how a gate gets skipped."""
    with pytest.raises(EngineError, match=f"no rule for {fact.__name__} at stage {stage.value}"):
        decide(at(PLAIN, stage, outcome=OK), FACTS[fact])


def test_the_table_holds_exactly_the_rows_tried_here() -> None:
    """A new row needs tests of its own."""
    assert {(stage.name, fact.__name__) for stage, fact in TABLE} == {
        ("ENTER", "ConditionsMet"),
        ("ENTER", "ConditionsBroken"),
        ("ENTER", "Raised"),
        ("WORK", "Returned"),
        ("WORK", "FellShort"),
        ("WORK", "Raised"),
        ("CHECK", "ConditionsMet"),
        ("CHECK", "ConditionsBroken"),
        ("CHECK", "Raised"),
        ("GATE", "ConditionsMet"),
        ("GATE", "Chosen"),
        ("ESCALATED", "Chosen"),
    }


AGAIN = ("retry", "stop")
GATED = flow(StepDef("a", gate=SHIP, next={FAIL: "b"}), StepDef("b", next={OK: None}))
ENDED = flow(StepDef("a", gate=SHIP, next={FAIL: End.FAILED}))
TESTED = flow(
    StepDef("a", next={FAIL: "b", SKIP: None}, postconditions=CHECKED, gate=SHIP),
    StepDef("b", next={OK: None}),
)
PATIENT = flow(StepDef("a", next={OK: None}, retries=2))
HASTY = flow(StepDef("a", next={OK: None}, retries=0))
CAREFUL = flow(StepDef("a", next={OK: None}, on_error="b"), StepDef("b", next={OK: End.FAILED}))
STUBBORN = flow(StepDef("a", next={OK: None}, on_error="a"))
BROKE = Finish(Status.FAILED, StepError("a", BOOM))
FEEDBACK = "no chapters\nA human wrote: look in part 2"


def move(workflow: Workflow, name: str, to: str = "b", feedback: str | None = None) -> Move:
    return Move(edge(workflow, "a", name), to, 1, (), feedback)


DECISIONS: dict[str, tuple[Stage, Workflow, dict[str, Any], Fact, Any]] = {
    "trying again would not make a precondition true": (
        Stage.ENTER, PLAIN, {}, ConditionsBroken("no brief"),
        Finish(Status.FAILED, PreconditionFailed("a", "no brief"))),
    "no work can meet a precondition that raised": (Stage.ENTER, PLAIN, {}, Raised(BOOM), BROKE),
    "a result is checked": (Stage.WORK, TESTED, {}, Returned(OK), Proceed(Stage.CHECK)),
    "a human decides before anything follows": (
        Stage.WORK, GATED, {}, Returned(OK), Proceed(Stage.GATE)),
    "there is nothing to approve in a failure": (
        Stage.WORK, ENDED, {}, Returned(FAIL),
        Finish(Status.FAILED, None, edge(ENDED, "a", "fail"))),
    "a plain step is left by its outcome": (
        Stage.WORK, PLAIN, {}, Returned(OK), move(PLAIN, "ok")),
    "work that fell short is tried again": (
        Stage.WORK, PATIENT, {}, FellShort("too short"), Retry("too short")),
    "as often as the step allows": (
        Stage.WORK, PATIENT, {"attempt": 2}, FellShort("too short"), Retry("too short")),
    "then a human decides": (
        Stage.WORK, PATIENT, {"attempt": 3}, FellShort("too short"), Wait("too short", AGAIN)),
    "at once without retries": (
        Stage.WORK, HASTY, {}, FellShort("too short"), Wait("too short", AGAIN)),
    "an error stops the run": (Stage.WORK, PLAIN, {}, Raised(BOOM), BROKE),
    "or goes where on_error says": (
        Stage.WORK, CAREFUL, {}, Raised(BOOM), move(CAREFUL, "error")),
    "an error that leads back is counted like any loop": (
        Stage.WORK, STUBBORN, {"counters": {"a/error": DEFAULT_BOUND}}, Raised(BOOM), Limit),
    "approvers see only what was checked": (
        Stage.CHECK, TESTED, {"outcome": OK}, ConditionsMet(), Proceed(Stage.GATE)),
    "what has no gate leaves by its outcome": (
        Stage.CHECK, TESTED, {"outcome": FAIL}, ConditionsMet(), move(TESTED, "fail")),
    "what does not hold is tried again": (
        Stage.CHECK, TESTED, {"outcome": OK}, ConditionsBroken("not so"), Retry("not so")),
    "then a human may accept it as it is": (
        Stage.CHECK, TESTED, {"outcome": OK, "attempt": 2}, ConditionsBroken("not so"),
        Wait("not so", ("retry", "accept", "stop"))),
    "what could not be checked has not passed": (
        Stage.CHECK, TESTED, {"outcome": OK}, Raised(BOOM), BROKE),
    "words at a gate go to the next step": (
        Stage.GATE, GATED, {"outcome": OK}, Chosen("again", "shorter"),
        move(GATED, "gate:again", "a", "shorter")),
    "an empty text is no feedback": (
        Stage.GATE, GATED, {"outcome": OK}, Chosen("again", ""), move(GATED, "gate:again", "a")),
    "an option may end the run": (
        Stage.GATE, GATED, {"outcome": OK}, Chosen("yes", "well done"),
        Finish(Status.COMPLETED, StepDecided("well done"), edge(GATED, "a", "gate:yes"))),
    "humans can loop too": (
        Stage.GATE, GATED, {"outcome": OK, "counters": {"a/gate:again": 2}}, Chosen("again"),
        Limit),
    "accepted work without a choice continues": (
        Stage.GATE, GATED, {"outcome": FAIL}, ConditionsMet(), move(GATED, "fail")),
    "guidance is in the next prompt": (
        Stage.ESCALATED, PLAIN, {}, Chosen("retry", "be brief"),
        Retry("be brief", by_human=True)),
    "a retry needs no words": (
        Stage.ESCALATED, PLAIN, {}, Chosen("retry"),
        Retry("a human requested a retry", by_human=True)),
    "the problem stays known": (
        Stage.ESCALATED, PLAIN, {"problem": "no chapters"}, Chosen("retry"),
        Retry("no chapters", by_human=True)),
    "guidance is added to it": (
        Stage.ESCALATED, PLAIN, {"problem": "no chapters"}, Chosen("retry", "look in part 2"),
        Retry(FEEDBACK, by_human=True)),
    "what is accepted still has to pass the gate": (
        Stage.ESCALATED, PLAIN, {"outcome": OK}, Chosen("accept"), Proceed(Stage.GATE)),
    "a stop is a rejection": (
        Stage.ESCALATED, PLAIN, {}, Chosen("stop", "hopeless", "ann"),
        Finish(Status.REJECTED, Rejected("ann", "hopeless"))),
    "exactly the bound that was reached is lifted": (
        Stage.ESCALATED, PLAIN, {"outcome": OK, "edge_key": "a/iterate"}, Chosen("continue"),
        Lift("a/iterate")),
    "or the limit on rounds": (
        Stage.ESCALATED, PLAIN, {"outcome": OK, "edge_key": ROUNDS}, Chosen("continue"),
        Lift(ROUNDS)),
}  # fmt: skip


@table(("stage", "workflow", "more", "fact", "decision"), DECISIONS)
def test_a_fact_leads_where_the_rules_say(
    stage: Stage, workflow: Workflow, more: dict[str, Any], fact: Fact, decision: Any
) -> None:
    """The names of the cases say why; a wrong row would skip a check or a human."""
    found = decide(at(workflow, stage, **more), fact)

    assert isinstance(found, Limit) if decision is Limit else found == decision


@pytest.mark.parametrize(
    ("stage", "more", "fact", "problem"),
    [
        (Stage.WORK, {}, Returned(SKIP), "'a' ended with outcome 'skip'.*edges: "),
        (Stage.GATE, {"outcome": OK}, Chosen("maybe"), "has no option 'maybe'"),
        (Stage.GATE, {}, ConditionsMet(), "left without an outcome"),
    ],
    ids=["a guessed edge", "a damaged answer", "no outcome"],
)
def test_nothing_is_guessed(stage: Stage, more: dict[str, Any], fact: Fact, problem: str) -> None:
    """A guess would lead to a step that no one intended, or pass for an approval."""
    with pytest.raises((EngineError, UnmappedOutcome), match=problem):
        decide(at(PLAIN if stage is Stage.WORK else GATED, stage, **more), fact)


@pytest.mark.parametrize(
    ("more", "offered"),
    [
        ({}, ("retry", "stop")),
        ({"outcome": OK}, ("retry", "accept", "stop")),
        ({"outcome": OK, "edge_key": "a/iterate"}, ("continue", "stop")),
    ],
    ids=["without a result", "with a result", "at a limit"],
)
def test_nothing_is_taken_for_an_answer_that_was_not_offered(
    more: dict[str, Any], offered: tuple[str, ...]
) -> None:
    """`accept` without a result, or an unknown word, must not move the run."""
    assert answers(at(PLAIN, Stage.ESCALATED, attempt=2, **more)) == offered
    for word in {"retry", "accept", "stop", "continue", "yes", ""} - set(offered):
        with pytest.raises(EngineError, match="is not an option"):
            decide(at(PLAIN, Stage.ESCALATED, attempt=2, **more), Chosen(word))


class TestLeaving:
    """Edges: ends, bounds, rounds and resets."""

    @pytest.mark.parametrize("end", End)
    def test_an_end_gives_its_status(self, end: End) -> None:
        """Only a plain end is completed."""
        ending = flow(StepDef("a", next={OK: end, FAIL: None}))

        decision = decide(at(ending, Stage.WORK), Returned(OK))

        assert decision == Finish(end.status, None, edge(ending, "a", "ok"))

    def loop(self, **edge: Any) -> Workflow:
        return flow(StepDef("a", next={ITERATE: Edge("a", **edge), OK: None}), max_iterations=3)

    def test_a_loop_goes_round_as_often_as_its_bound_allows(self) -> None:
        """Exactly: not once more, not once less."""
        bounded = self.loop(bound=2)

        for count in (0, 1):
            position = at(bounded, Stage.WORK, counters={"a/iterate": count})
            assert isinstance(decide(position, Returned(ITERATE)), Move)
        position = at(bounded, Stage.WORK, counters={"a/iterate": 2})
        assert decide(position, Returned(ITERATE)) == Limit(
            edge(bounded, "a", "iterate"), EdgeLimit("a", "iterate", 2)
        )

    def test_a_loop_without_a_bound_ends_at_the_default_one(self) -> None:
        """Never a hang."""
        position = at(self.loop(), Stage.WORK, counters={"a/iterate": DEFAULT_BOUND})

        assert isinstance(decide(position, Returned(ITERATE)), Limit)

    def test_at_its_bound_a_loop_may_ask_a_human(self) -> None:
        """The human sees what happened and decides how to continue."""
        position = at(self.loop(bound=1, on_limit="ask"), Stage.WORK, counters={"a/iterate": 1})

        assert decide(position, Returned(ITERATE)) == Wait(
            "step 'a' may take 'iterate' at most 1 times", ("continue", "stop"), "a/iterate"
        )

    def test_an_edge_into_a_loop_can_be_bounded_too(self) -> None:
        """Three repairs means three, wherever the bound is."""
        repair = flow(
            StepDef("a", next={FAIL: Edge("fix", bound=1), OK: None}),
            StepDef("fix", next={OK: "a"}),
        )

        assert isinstance(decide(at(repair, Stage.WORK), Returned(FAIL)), Move)
        position = at(repair, Stage.WORK, counters={"a/fail": 1})
        assert isinstance(decide(position, Returned(FAIL)), Limit)

    def test_only_an_edge_that_starts_a_round_adds_one(self) -> None:
        """Going to the next step is still the same round."""
        rounds = self.loop(starts_iteration=True)

        decision = decide(at(rounds, Stage.WORK, iteration=2), Returned(ITERATE))

        assert decision == Move(edge(rounds, "a", "iterate"), "a", 3)

    def test_rounds_end_at_the_limit_by_name(self) -> None:
        """Never a silent "completed"."""
        rounds = self.loop(starts_iteration=True)

        assert decide(at(rounds, Stage.WORK, iteration=3), Returned(ITERATE)) == Limit(
            edge(rounds, "a", "iterate"), RoundLimit(3)
        )

    def test_the_last_round_can_still_be_finished(self) -> None:
        """The limit is on starting rounds, also where a changed definition lowered it."""
        assert decide(at(self.loop(), Stage.WORK, iteration=9), Returned(OK)) == Finish(
            Status.COMPLETED, None, edge(self.loop(), "a", "ok")
        )

    def test_more_rounds_can_be_asked_for_and_granted(self) -> None:
        """A grant allows as many again; one that changed nothing would be requested forever."""
        rounds = self.loop(starts_iteration=True, on_limit="ask")
        waiting = Wait("3 rounds without passing", ("continue", "stop"), ROUNDS)

        assert decide(at(rounds, Stage.WORK, iteration=3), Returned(ITERATE)) == waiting
        granted = {ROUNDS: 1}
        for iteration in (3, 4, 5):
            position = at(rounds, Stage.WORK, iteration=iteration, counters=granted)
            assert isinstance(decide(position, Returned(ITERATE)), Move)
        position = at(rounds, Stage.WORK, iteration=6, counters=granted)
        assert isinstance(decide(position, Returned(ITERATE)), Wait)

    def test_counters_are_reset_when_the_step_is_left_forward(self) -> None:
        """In the next iteration, a step has all its tries again."""
        review = flow(
            StepDef(
                "a",
                next={
                    OK: "b",
                    FAIL: Edge("b", bound=5, resets=True),
                    ITERATE: Edge("a", bound=3, resets=True),
                    SKIP: "a",
                },
            ),
            StepDef("b", next={OK: None, FAIL: "a"}),
        )
        counters = {"a/iterate": 2, "a/fail": 1, "a/skip": 4, "b/fail": 1}

        def resets(outcome: Outcome) -> tuple[str, ...]:
            decision = decide(at(review, Stage.WORK, counters=counters), Returned(outcome))
            assert isinstance(decision, Move)
            return decision.resets

        assert resets(OK) == ("a/fail", "a/iterate")
        assert resets(FAIL) == ("a/iterate",)
        assert resets(ITERATE) == ()
        assert resets(SKIP) == ()

    def test_a_count_that_never_began_needs_no_reset(self) -> None:
        """Most visits have nothing to reset, and their events stay small."""
        review = flow(
            StepDef("a", next={OK: "b", ITERATE: Edge("a", resets=True)}),
            StepDef("b", next={OK: None}),
        )

        assert decide(at(review, Stage.WORK), Returned(OK)) == Move(edge(review, "a", "ok"), "b", 1)

    def test_an_edge_can_be_taken_by_name(self) -> None:
        """What a human wrote at a gate goes to the next step."""
        ok = edge(PLAIN, "a", "ok")

        assert leave(at(PLAIN, Stage.GATE), ok, feedback="mind the tone") == Move(
            ok, "b", 1, (), "mind the tone"
        )


def test_every_option_of_an_escalation_says_what_it_leads_to() -> None:
    """A human who is asked to continue or stop should not have to guess what follows."""
    workflow = flow(StepDef("a", next={OK: None}), max_iterations=3)
    at = Position(workflow, "a", Stage.ESCALATED, 1, 3, {}, OK)

    failed = escalation_options(at)
    rounds = escalation_options(at._replace(edge_key=ROUNDS))
    loop = escalation_options(at._replace(edge_key="a/ok"))

    assert all(option.description for option in (*failed, *rounds, *loop))
    assert [option.label for option in failed] == ["retry", "accept", "stop"]
    assert rounds[0].description == "allow 3 more rounds"
    assert "loop" in loop[0].description


def test_an_edge_that_grants_an_iteration_is_bounded_itself() -> None:
    """Otherwise a request that is repeated would never end."""
    again = Edge("a", starts_iteration=True, grants_iteration=True)
    workflow = flow(StepDef("a", next={OK: None, ITERATE: again}), max_iterations=2)
    edge = workflow.edges.need("a", ITERATE)
    taken = [
        leave(Position(workflow, "a", Stage.WORK, 1, 1 + n, {edge.key: n}), edge)
        for n in range(DEFAULT_BOUND + 1)
    ]

    assert all(isinstance(each, Move) for each in taken[:-1])
    assert isinstance(taken[-1], Limit)
