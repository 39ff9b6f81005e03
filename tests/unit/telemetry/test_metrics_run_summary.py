import json

from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.telemetry.metrics import (
    CLAIM_SECONDS,
    EFFECT_SECONDS,
    RunSummary,
    summarize,
)
from tests.unit.telemetry.events import START, at, journal


def test_the_numbers_of_a_run_are_those_of_its_journal() -> None:
    """Tries of all processes count, and a lost one costs an unknown amount."""
    summary = summarize(journal())

    assert summary.effects == [
        ["ask", "claude", "lost", 1],
        ["ask", "claude", "ok", 1],
        ["ask", "claude", "retried", 1],
        ["ask", "codex", "error", 1],
        ["wait", "", "ok", 1],
    ]
    assert [(kind, sum(counts), total) for kind, counts, total in summary.seconds] == [
        ("ask", 4, 2 + 0 + 10 + 3),
        ("wait", 1, 928),
    ]
    assert all(len(counts) == len(EFFECT_SECONDS) + 1 for _, counts, _ in summary.seconds)
    assert summary.spend == [
        ["claude", "opus", 2, 0, 0, 0, 2, 2],
        ["claude", "opus-1", 1, 100, 20, 0.5, 0, 0],
        ["codex", "opus", 1, 0, 0, 0, 1, 1],
    ]
    assert summary.in_doubt == []
    assert summary.seconds_total == 1006
    assert (summary.claims, summary.lease_losses) == ([], 1)


def test_a_call_in_progress_is_in_doubt() -> None:
    """If its process is gone, it may have been paid for."""
    summary = summarize(journal()[:5])

    assert summary.in_doubt == [["claude", "opus", 1]]
    assert summary.seconds_total is None


def test_a_stored_summary_is_read_back() -> None:
    """It is what a run adds to every later reading."""
    summary = summarize(journal())

    text = summary.to_text()

    assert RunSummary.from_text(text) == summary
    assert "secret" not in text
    assert len(json.dumps(text)) < 1000


def test_the_time_until_a_worker_claimed_a_run_is_counted_each_time() -> None:
    """Too few workers are seen before users complain; a clock that is ahead counts as no time."""
    summary = summarize(
        [
            at(0, ev.RunStarted("docs", "definition", "draft", {})),
            at(0, ev.RunStopped(Status.QUEUED)),
            at(3, ev.RunResumed(START)),
            at(4, ev.RunStopped(Status.PARKED, due_at=START + 60)),
            at(61, ev.RunResumed(START + 60)),
            at(62, ev.RunStopped(Status.QUEUED)),
            at(63, ev.RunResumed(START + 70)),
            at(64, ev.RunStopped(Status.INTERRUPTED)),
            at(900, ev.RunResumed()),
        ]
    )

    counts, total = summary.claims
    assert (sum(counts), total) == (3, 3 + 1 + 0)
    assert counts[CLAIM_SECONDS.index(1.0)] == counts[CLAIM_SECONDS.index(5.0)] == 1
    assert summary.lease_losses == 0
