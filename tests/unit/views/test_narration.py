import pytest

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.outcome import Outcome, Status
from signoff.core.stop_reason import (
    AnswerPending,
    Cancelled,
    NotConverging,
    ProcessStopped,
    StepDecided,
    StopReason,
)
from signoff.views.narration import Narrator, Weight, describe_answer

STARTED = ev.RunStarted("review", "d", "draft", {"topic": "secret plans"}, at=0)


def described(*events: ev.Event) -> list[str]:
    narrator = Narrator()
    return [line.text for event in events for line in narrator.narrate(event)]


def ask(at: float, effect: str = "ask#1") -> ev.EffectStarted:
    payload = {"agent": "claude", "model": "large", "prompt": "secret plans"}
    return ev.EffectStarted(EffectId(effect), EffectKind.ASK, "d", payload, at=at)


def test_a_short_run_is_described_from_start_to_end() -> None:
    """The log of a server shows what happened without any other tool."""
    usage = {"tokens_in": 1000, "tokens_out": 204, "usd": 0.0123}

    lines = described(
        STARTED,
        ask(1),
        ev.EffectFinished(EffectId("ask#1"), {"text": "t"}, usage=usage, at=3),
        ev.StepFinished(Outcome.OK, "draft/ok", "draft", round=2, at=4),
        ev.StepFinished(Outcome.OK, "draft/ok", None, round=2, at=5),
        ev.RunStopped(Status.COMPLETED, at=5),
    )

    assert lines == [
        "workflow review started",
        "draft: begins",
        "draft: asks claude (large)",
        "draft: claude (large) answered in 2.0s (1,204 tokens, $0.0123)",
        "draft: ok in 4.0s",
        "draft: begins (round 2)",
        "draft: ok in 1.0s",
        "completed",
    ]


def test_a_logged_line_names_its_step_and_its_item() -> None:
    """A hostile line must not pass for another entry."""
    lines = described(
        STARTED,
        ev.Logged("turn 1:\r\n2026-01-01  completed", at=1),
        ev.Logged("fine", "critics#1[3]~2", at=2),
    )

    assert lines[2:] == ["draft: turn 1: 2026-01-01 completed", "draft critics[3]: fine"]


def test_the_warnings_of_a_step_are_described_once() -> None:
    """A gate shows what the step has done, and its end stores the same again."""
    narrator = Narrator(warnings_of=lambda state: state.get("warnings", ()))
    delta = {"append": {"warnings": ["too long"]}}

    lines = [
        line.text
        for event in (
            STARTED,
            ev.StepWorked(Outcome.OK, delta, at=1),
            ev.StepFinished(Outcome.OK, "draft/ok", "draft", delta, at=2),
            ev.StepFinished(Outcome.OK, "draft/ok", None, {"append": {"warnings": ["late"]}}, at=3),
        )
        for line in narrator.narrate(event)
    ]

    assert lines == [
        "workflow review started",
        "draft: begins",
        "draft: warning: too long",
        "draft: ok in 2.0s",
        "draft: begins again",
        "draft: warning: late",
        "draft: ok in 1.0s",
    ]


@pytest.mark.parametrize(
    ("by", "who"), [("codex", "codex (for claude (large))"), ("claude", "claude (large)")]
)
def test_the_agent_that_answered_instead_is_named(by: str, who: str) -> None:
    """Without its name in the log, a fallback would be noticed only on its bill."""
    reply = {"text": "t", "agent": by}

    *_, line = described(STARTED, ask(1), ev.EffectFinished(EffectId("ask#1"), reply, at=3))

    assert line == f"draft: {who} answered in 2.0s"


def test_prompts_and_parameters_are_not_repeated() -> None:
    """Logs travel further than prompts may."""
    assert "secret" not in " ".join(described(STARTED, ask(1)))


def test_a_question_or_an_error_of_several_lines_is_one_entry() -> None:
    """A finding in a question could otherwise write an entry of its own."""
    asked, failed = described(
        ev.Escalated("2 rounds; still open:\n- a typo\n12:00:00  approved", at=1),
        ev.RunStopped.because(Status.FAILED, StepDecided("no disk\nno paper")),
    )

    assert asked.endswith("2 rounds; still open: - a typo 12:00:00 approved")
    assert failed == "failed: no disk no paper"


def test_items_of_a_fan_out_are_details_until_the_last() -> None:
    """A thousand lines would hide the one that matters."""
    narrator = Narrator()
    fan = ev.EffectStarted(EffectId("critics#1"), EffectKind.MAP, "d", {"items": 2}, at=1)
    for event in (STARTED, fan):
        narrator.narrate(event)

    (first,) = narrator.narrate(ev.ItemFinished("critics#1[0]", at=2))
    (last,) = narrator.narrate(ev.ItemFinished("critics#1[1]", at=3))

    assert (first.text, first.weight) == ("draft: critics 1/2", Weight.DETAIL)
    assert (last.text, last.weight) == ("draft: critics 2/2", Weight.NEWS)


def test_an_answer_says_who_gave_it_and_why() -> None:
    """Approvals are read in logs by people who look for who approved."""
    wait = ev.EffectStarted(EffectId("wait#1"), EffectKind.WAIT, "d", {"kind": "approval"}, at=1)
    reply = {"value": True, "text": "fine", "by": "ann", "at": 2.0}

    lines = described(STARTED, wait, ev.EffectFinished(EffectId("wait#1"), reply, at=2))

    assert lines[-2:] == ["draft: waits for a human (approval)", "draft: approved by ann: fine"]


def test_an_item_is_named_without_the_engines_numbers() -> None:
    """`critics#1[3]~2` means nothing to a user."""
    lines = described(STARTED, ev.ItemFailed("critics#1[3]", "bad JSON", at=1))

    assert lines[-1] == "draft critics[3]: failed: bad JSON"


def test_a_call_that_was_stopped_with_its_run_did_not_fail() -> None:
    """One Ctrl-C in a fan-out over eight items looked like eight broken agents."""
    narrator = Narrator()
    for event in (STARTED, ask(1)):
        narrator.narrate(event)
    error = {"type": "AgentStopped", "message": "The call was stopped together with its run."}

    (line,) = narrator.narrate(ev.EffectFinished(EffectId("ask#1"), error=error, at=2))

    assert (line.text, line.weight) == ("draft: claude (large) was stopped", Weight.DETAIL)


def test_items_that_fail_alike_tell_their_reason_once() -> None:
    """Sixteen lines of one and the same reason buried everything that came before."""
    narrator = Narrator()
    failures = {str(n): "bad JSON" for n in range(3)}
    events: list[ev.Event] = [
        STARTED,
        *(ask(1, f"critics#1[{n}]/ask#1") for n in range(3)),
        *(_failed(n, "bad JSON") for n in range(3)),
        *(ev.ItemFailed(f"critics#1[{n}]", "bad JSON", at=2) for n in range(3)),
        ev.EffectFinished(EffectId("critics#1"), error={"failures": failures}, at=3),
    ]

    described = [line for event in events for line in narrator.narrate(event)]

    assert [line.text for line in described if line.weight is Weight.TROUBLE] == [
        "draft critics[0]: claude (large) failed: bad JSON",
        "draft: 3 items of critics failed",
    ]
    assert described[-2].text == "draft critics[2]: failed for the same reason"


def test_items_that_fail_for_reasons_of_their_own_tell_each() -> None:
    """What went wrong elsewhere must not hide behind the first failure."""
    lines = described(
        STARTED,
        ev.ItemFailed("critics#1[0]", "bad JSON", at=1),
        ev.ItemFailed("critics#1[1]", "no quota", at=1),
        ev.EffectFinished(
            EffectId("critics#1"), error={"failures": {"0": "bad JSON", "1": "no quota"}}, at=2
        ),
    )

    assert lines[2:] == [
        "draft critics[0]: failed: bad JSON",
        "draft critics[1]: failed: no quota",
    ]


def test_the_next_attempt_describes_its_failures_in_full_again() -> None:
    """That it failed again, for the same reason, is news."""
    failed = ev.ItemFailed("critics#1[0]", "bad JSON", at=1)

    lines = described(STARTED, failed, ev.AttemptFailed("1 item failed", at=2), failed)

    assert lines[-1] == lines[2] == "draft critics[0]: failed: bad JSON"


def test_a_process_that_died_is_reported_before_the_run_continues() -> None:
    """A log showed nothing between a kill and `resumed`, as if the user had stopped the run."""
    died, stopped = ev.RunResumed(at=5), ev.RunStopped(Status.INTERRUPTED, at=9)

    lines = described(STARTED, died, stopped, ev.RunResumed(at=10))

    assert lines[2:] == [
        "the previous process is gone; nothing finished is repeated",
        "resumed at draft",
        "interrupted",
        "resumed at draft",
    ]


def _failed(item: int, reason: str) -> ev.EffectFinished:
    error = {"type": "AgentError", "message": reason}
    return ev.EffectFinished(EffectId(f"critics#1[{item}]/ask#1"), error=error, at=2)


def test_every_kind_of_event_is_described_or_silent_on_purpose() -> None:
    """A new event without a description would be missing from logs, and no one would notice."""
    silent = {"step_begun", "step_worked", "effect_running", "effect_attempt_failed"}
    from signoff.views.narration import _DESCRIBE, _TEMPLATES

    assert set(ev.KINDS) - set(_DESCRIBE) - set(_TEMPLATES) == silent


@pytest.mark.parametrize(
    ("status", "reason", "line"),
    [
        (Status.INTERRUPTED, ProcessStopped(), "interrupted"),
        (Status.WAITING, AnswerPending(), "waiting"),
        (Status.CANCELLED, Cancelled("too slow"), "cancelled: too slow"),
        (
            Status.NOT_CONVERGING,
            NotConverging("plateau", "no better"),
            "not converging (plateau): no better",
        ),
        (Status.FAILED, None, "failed"),
    ],
)
def test_the_end_of_a_run_says_nothing_twice(
    status: Status, reason: StopReason | None, line: str
) -> None:
    """`interrupted: interrupted` reads like a mistake of the program."""
    (end,) = described(ev.RunStopped.because(status, reason))

    assert end == line


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"value": False, "by": "ann", "text": "too\nlong"}, "rejected by ann: too long"),
        ({"value": "Emma\nor so", "by": "ann"}, "answered 'Emma' by ann"),
        ({"value": "other", "text": "because"}, "answered 'other': because"),
        ({"value": "", "by": "ann"}, "answered by ann"),
        ({"value": None}, "answered"),
        ({"value": 0, "by": "ann"}, "answered '0' by ann"),
    ],
)
def test_an_answer_is_described_on_one_line(answer: dict[str, object], words: str) -> None:
    """A log is read line by line, and the reason for a rejection is what users look for."""
    assert describe_answer(answer) == words


def test_a_step_left_by_its_error_edge_says_what_went_wrong() -> None:
    """The run continues, so no other line would report it."""
    error = {"set": {"_error": {"step": "draft", "message": "the disk was full"}}}
    narrator = Narrator()
    narrator.narrate(STARTED)

    line, begins = narrator.narrate(
        ev.StepFinished(Outcome.FAIL, "draft/error", "fix", delta=error, at=2)
    )

    assert line.text == "draft: fail in 2.0s: the disk was full"
    assert line.weight is Weight.TROUBLE
    assert begins.text == "fix: begins"
    assert narrator.timeline.visits[0].error == "the disk was full"


def test_an_error_that_an_earlier_step_left_behind_is_not_described_again() -> None:
    """A handler may carry `_error` on in what it makes."""
    error = {"set": {"_error": {"step": "draft", "message": "the disk was full"}}}

    *_, line = described(STARTED, ev.StepFinished(Outcome.OK, "draft/ok", None, delta=error, at=2))

    assert line == "draft: ok in 2.0s"


def test_a_file_that_was_read_is_a_detail_and_a_missing_one_is_named() -> None:
    """A handler that continues without a file should leave a trace in the log."""
    started = ev.EffectStarted(
        EffectId("read:a.md#1"), EffectKind.READ, "d", {"path": "a.md"}, at=1
    )
    reply = {"path": "a.md", "text": "secret plans", "digest": "x"}

    *_, read = described(STARTED, started, ev.EffectFinished(started.id, reply, at=2))
    *_, missing = described(STARTED, started, ev.EffectFinished(started.id, {}, at=2))

    assert (read, missing) == ("draft: read a.md", "draft: a.md is missing")
