import json

import pytest

from signoff.core import events as ev
from signoff.core.fold import fold, state_from_json, state_to_json
from signoff.core.outcome import FINAL, Status
from signoff.core.remedies import Login, RaiseLimit, Resume, StartRun
from signoff.core.stop_reason import (
    AnswerPending,
    AnswersUnused,
    ApprovalStale,
    BudgetReached,
    Cancelled,
    EdgeLimit,
    ErrorInfo,
    NotConverging,
    PreconditionFailed,
    ProcessStopped,
    QuotaExhausted,
    Rejected,
    RoundLimit,
    Sleeping,
    StepDecided,
    StepError,
    StopReason,
    error_of,
    reason_from_json,
    remedies,
)

ERROR = ErrorInfo("AgentAuth", "not logged in", "claude", "opus", remedies=(Login("claude"),))

REASONS: list[StopReason] = [
    AnswerPending(),
    ApprovalStale("plan.md", "ann", 3),
    Sleeping(9.5),
    QuotaExhausted(ERROR, 9.5),
    BudgetReached("step", "usd", 0.5, "draft", "claude"),
    RoundLimit(3),
    EdgeLimit("draft", "iterate", 2, "two findings are open"),
    NotConverging("plateau", "no fewer findings"),
    PreconditionFailed("draft", "no brief"),
    StepError("draft", ERROR),
    AnswersUnused("draft", (3, 4)),
    Rejected("ann", "too long"),
    Cancelled("not needed"),
    ProcessStopped(),
    StepDecided("nothing to do"),
]


def test_every_kind_of_reason_is_tried_here() -> None:
    """A kind that is left out below could fail to be stored without anyone noticing."""
    tried = {type(reason) for reason in REASONS}

    assert tried == {kind for name, kind in StopReason.kinds.items() if not name.startswith("_")}


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: type(reason).__name__)
def test_a_reason_is_read_back_as_it_was_stored(reason: StopReason) -> None:
    """A resumed process, `show` and a REST client must see the same reason."""
    stopped = ev.RunStopped.because(Status.FAILED, reason)

    stored = ev.from_json(json.loads(json.dumps(ev.to_json(stopped))))
    state = fold([stored])
    again = state_from_json(json.loads(json.dumps(state_to_json(state))))

    assert (state.stop_reason, state.reason) == (reason, str(reason))
    assert again.stop_reason == reason


def test_an_unknown_kind_is_refused() -> None:
    """A reason of a newer version must not be taken for one of ours."""
    with pytest.raises(ValueError, match="'moonrise'"):
        reason_from_json({"kind": "moonrise"})


def test_a_kind_is_stored_by_a_plain_word() -> None:
    """Programs that read `show --json` depend on it."""
    assert BudgetReached("run", "usd", 5.0).to_json() == {
        "kind": "budget_reached",
        "scope": "run",
        "limit": "usd",
        "amount": 5.0,
    }


def test_an_error_brings_its_own_remedies_first() -> None:
    """Resuming without having logged in would fail the same way."""
    found = remedies("one", Status.FAILED, StepError("draft", ERROR))

    assert found == (Login("claude"), Resume("one"), Resume("one", adopt=True))


def test_a_limit_is_raised_where_it_was_set() -> None:
    """Raising the run's limit does not help against the step's."""
    reason = BudgetReached("step", "calls", 3)

    assert remedies("one", Status.BUDGET, reason) == (RaiseLimit("calls", "step", "one"),)


@pytest.mark.parametrize("status", sorted(FINAL))
def test_only_a_new_run_replaces_one_that_has_ended_without_success(status: Status) -> None:
    """Resuming it would lead nowhere; a completed one, or a finished review, needs nothing."""
    done = status in (Status.COMPLETED, Status.FINDINGS, Status.INCOMPLETE)
    expected = () if done else (StartRun(again=True, run="one"),)

    assert remedies("one", status, None) == expected


def test_only_an_error_is_an_error() -> None:
    """A limit or a rejection is an expected end."""
    assert error_of(Status.FAILED, StepError("draft", ERROR)) == ERROR
    assert error_of(Status.PARKED, QuotaExhausted(ERROR, 1.0)) == ERROR
    assert error_of(Status.BUDGET, BudgetReached("run", "usd", 1.0)) is None
    assert error_of(Status.FAILED, PreconditionFailed("draft", "no brief")) == ErrorInfo(
        "PreconditionFailed", "no brief"
    )


@pytest.mark.parametrize(
    ("limit", "amount", "words"),
    [("usd", 0.5, "$0.5"), ("calls", 1, "1 call"), ("tokens", 2_000_000, "2000000 tokens"),
     ("seconds", 2.5, "2.5 seconds")],
)  # fmt: skip
def test_a_limit_is_formatted_for_humans(limit: str, amount: float, words: str) -> None:
    """It is the one line the user gets to see."""
    assert str(BudgetReached("run", limit, amount)) == f"the run's limit of {words} is reached"
