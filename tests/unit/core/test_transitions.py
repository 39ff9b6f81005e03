import itertools
from typing import Any, get_args

import pytest

from signoff.core.edges import DEFAULT_BOUND, ResolvedEdge
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
from signoff.errors import EngineError, UnmappedOutcome

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


class TestEntering:
    """ENTER: preconditions."""

    def test_preconditions_that_do_not_hold_stop_the_run(self) -> None:
        """Trying again would not make them true."""
        assert decide(at(PLAIN, Stage.ENTER), ConditionsBroken("no brief")) == Finish(
            Status.FAILED, PreconditionFailed("a", "no brief")
        )


class TestWorking:
    """WORK: the handler."""

    def test_a_result_is_checked_where_there_are_postconditions(self) -> None:
        """The engine checks the conditions itself."""
        checked = flow(StepDef("a", next={FAIL: None}, postconditions=CHECKED, gate=SHIP))

        assert decide(at(checked, Stage.WORK), Returned(OK)) == Proceed(Stage.CHECK)

    def test_a_result_without_postconditions_goes_to_the_gate(self) -> None:
        """A human decides before anything follows from it."""
        gated = flow(StepDef("a", gate=SHIP))

        assert decide(at(gated, Stage.WORK), Returned(OK)) == Proceed(Stage.GATE)

    def test_a_gate_is_for_what_is_ok(self) -> None:
        """A step that failed goes where its failure leads; there is nothing to approve."""
        gated = flow(StepDef("a", gate=SHIP, next={FAIL: End.FAILED}))

        assert decide(at(gated, Stage.WORK), Returned(FAIL)) == Finish(
            Status.FAILED, None, edge(gated, "a", "fail")
        )

    def test_with_neither_the_step_is_left_by_its_outcome(self) -> None:
        """The common case needs no further stage."""
        assert decide(at(PLAIN, Stage.WORK), Returned(OK)) == Move(edge(PLAIN, "a", "ok"), "b", 1)

    def test_an_outcome_that_leads_nowhere_is_an_error(self) -> None:
        """A guessed edge would lead to a step the author did not intend."""
        with pytest.raises(
            UnmappedOutcome, match=r"'a' ended with outcome 'skip'.*edges: ok, fail"
        ):
            decide(at(PLAIN, Stage.WORK), Returned(SKIP))

    def test_work_that_fell_short_is_tried_again_with_the_reason(self) -> None:
        """As often as the step allows."""
        patient = flow(StepDef("a", next={OK: None}, retries=2))

        for attempt in (1, 2):
            position = at(patient, Stage.WORK, attempt=attempt)
            assert decide(position, FellShort("too short")) == Retry("too short")

    @pytest.mark.parametrize("retries", [0, 1, 2])
    def test_then_a_human_decides(self, retries: int) -> None:
        """There is nothing to accept, for the handler never returned."""
        patient = flow(StepDef("a", next={OK: None}, retries=retries))
        position = at(patient, Stage.WORK, attempt=retries + 1)

        assert decide(position, FellShort("too short")) == Wait("too short", ("retry", "stop"))

    @pytest.mark.parametrize("stage", [Stage.ENTER, Stage.CHECK])
    def test_a_condition_that_no_work_can_meet_stops_the_run(self, stage: Stage) -> None:
        """Its author has to fix it: another attempt at the work would change nothing."""
        assert decide(at(PLAIN, stage), Raised(BOOM)) == Finish(Status.FAILED, StepError("a", BOOM))

    def test_a_handler_that_raised_stops_the_run(self) -> None:
        """Its author has to fix it; the run can then be resumed."""
        assert decide(at(PLAIN, Stage.WORK), Raised(BOOM)) == Finish(
            Status.FAILED, StepError("a", BOOM)
        )

    def test_a_handler_that_raised_goes_where_on_error_says(self) -> None:
        """Cleaning up is part of the graph."""
        careful = flow(
            StepDef("a", next={OK: None}, on_error="b"), StepDef("b", next={OK: End.FAILED})
        )

        assert decide(at(careful, Stage.WORK), Raised(BOOM)) == Move(
            edge(careful, "a", "error"), "b", 1
        )

    def test_an_error_that_leads_back_is_counted_like_any_loop(self) -> None:
        """A handler that always raises must not loop forever."""
        stubborn = flow(StepDef("a", next={OK: None}, on_error="a"))
        position = at(stubborn, Stage.WORK, counters={"a/error": DEFAULT_BOUND})

        assert isinstance(decide(position, Raised(BOOM)), Limit)


class TestChecking:
    """CHECK: postconditions."""

    CHECKED = flow(
        StepDef("a", next={FAIL: "b", SKIP: None}, postconditions=CHECKED, gate=SHIP),
        StepDef("b", next={OK: None}),
    )

    def test_a_result_that_holds_goes_to_the_gate(self) -> None:
        """Approvers only see work whose conditions the engine has checked."""
        assert decide(at(self.CHECKED, Stage.CHECK, outcome=OK), ConditionsMet()) == Proceed(
            Stage.GATE
        )

    def test_or_leaves_by_its_outcome(self) -> None:
        """Where there is no gate to pass."""
        assert decide(at(self.CHECKED, Stage.CHECK, outcome=FAIL), ConditionsMet()) == Move(
            edge(self.CHECKED, "a", "fail"), "b", 1
        )

    def test_a_result_that_does_not_hold_is_tried_again(self) -> None:
        """With what is wrong as feedback."""
        position = at(self.CHECKED, Stage.CHECK, outcome=OK)

        assert decide(position, ConditionsBroken("not so")) == Retry("not so")

    def test_then_a_human_may_accept_it_as_it_is(self) -> None:
        """There is a result, and a human can overrule the check."""
        position = at(self.CHECKED, Stage.CHECK, attempt=2, outcome=OK)

        assert decide(position, ConditionsBroken("not so")) == Wait(
            "not so", ("retry", "accept", "stop")
        )

    def test_a_check_that_raised_stops_the_run(self) -> None:
        """What could not be checked has not been passed."""
        position = at(self.CHECKED, Stage.CHECK, outcome=OK)

        assert decide(position, Raised(BOOM)) == Finish(Status.FAILED, StepError("a", BOOM))


class TestAtTheGate:
    """GATE: a human chooses, or an escalation was accepted."""

    GATED = flow(StepDef("a", gate=SHIP, next={FAIL: "b"}), StepDef("b", next={OK: None}))

    def test_an_option_leads_where_it_says(self) -> None:
        """What the human wrote goes to the next step."""
        position = at(self.GATED, Stage.GATE, outcome=OK)

        assert decide(position, Chosen("again", "shorter")) == Move(
            edge(self.GATED, "a", "gate:again"), "a", 1, (), "shorter"
        )
        assert decide(position, Chosen("yes", "well done")) == Finish(
            Status.COMPLETED, StepDecided("well done"), edge(self.GATED, "a", "gate:yes")
        )

    def test_a_choice_without_words_gives_no_feedback(self) -> None:
        """An empty text is no feedback."""
        decision = decide(at(self.GATED, Stage.GATE, outcome=OK), Chosen("again", ""))

        assert isinstance(decision, Move)
        assert decision.feedback is None

    def test_an_option_that_is_not_there_finalises_nothing(self) -> None:
        """A damaged answer must not pass for an approval."""
        with pytest.raises(EngineError, match="has no option 'maybe'"):
            decide(at(self.GATED, Stage.GATE, outcome=OK), Chosen("maybe"))

    def test_an_option_back_into_the_work_is_bounded(self) -> None:
        """Humans can loop too."""
        position = at(self.GATED, Stage.GATE, outcome=OK, counters={"a/gate:again": 2})

        assert isinstance(decide(position, Chosen("again")), Limit)

    def test_without_a_choice_the_step_is_left_by_its_outcome(self) -> None:
        """Work that was accepted in an escalation, or has no gate, continues."""
        assert decide(at(self.GATED, Stage.GATE, outcome=FAIL), ConditionsMet()) == Move(
            edge(self.GATED, "a", "fail"), "b", 1
        )

    def test_a_step_is_never_left_without_an_outcome(self) -> None:
        """Without an outcome there is no edge to take."""
        with pytest.raises(EngineError, match="left without an outcome"):
            decide(at(self.GATED, Stage.GATE), ConditionsMet())


class TestEscalated:
    """ESCALATED: retries are used up."""

    def at(self, **more: Any) -> Position:
        return at(PLAIN, Stage.ESCALATED, attempt=2, **more)

    def test_retry_opens_another_attempt_with_guidance(self) -> None:
        """What the human wrote is in the next prompt."""
        assert decide(self.at(), Chosen("retry", "be brief")) == Retry("be brief", by_human=True)
        assert decide(self.at(), Chosen("retry")) == Retry(
            "a human requested a retry", by_human=True
        )

    def test_what_a_human_writes_is_added_to_the_problem_and_does_not_replace_it(self) -> None:
        """The worker has to know what was wrong as well."""
        position = self.at(problem="no chapters")

        assert decide(position, Chosen("retry")) == Retry("no chapters", by_human=True)
        assert decide(position, Chosen("retry", "look in part 2")) == Retry(
            "no chapters\nA human wrote: look in part 2", by_human=True
        )

    def test_accept_takes_the_result_as_it_is(self) -> None:
        """It still has to pass the gate."""
        assert decide(self.at(outcome=OK), Chosen("accept")) == Proceed(Stage.GATE)

    def test_stop_rejects_the_run(self) -> None:
        """Not completed, not failed: a human rejected it."""
        assert decide(self.at(), Chosen("stop", "hopeless", "ann")) == Finish(
            Status.REJECTED, Rejected("ann", "hopeless")
        )

    @pytest.mark.parametrize("limit", ["a/iterate", ROUNDS])
    def test_continue_lifts_exactly_the_limit_that_was_reached(self, limit: str) -> None:
        """Other counters stay."""
        assert decide(self.at(outcome=OK, edge_key=limit), Chosen("continue")) == Lift(limit)

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
        self, more: dict[str, Any], offered: tuple[str, ...]
    ) -> None:
        """`accept` without a result, or an unknown word, must not move the run."""
        assert answers(self.at(**more)) == offered
        for word in {"retry", "accept", "stop", "continue", "yes", ""} - set(offered):
            with pytest.raises(EngineError, match="is not an option"):
                decide(self.at(**more), Chosen(word))


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
