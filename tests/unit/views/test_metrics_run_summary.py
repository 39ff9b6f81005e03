from signoff.core import events as ev
from signoff.core.outcome import Status
from signoff.views.metrics import (
    CLAIM_SECONDS,
    EFFECT_SECONDS,
    SUM,
    RunSummary,
    summarize,
)
from tests.unit.views.events import START, at, journal


def amounts(summary: RunSummary, metric: str) -> dict[tuple[str, ...], float]:
    return {tuple(labels): amount for name, labels, amount in summary.amounts if name == metric}


def counts(summary: RunSummary, metric: str) -> list[tuple[list[str], list[int], float]]:
    """Returns what a histogram has: labels, how many values each bucket has, and their sum."""
    buckets = amounts(summary, metric)
    return [
        (
            [*labels],
            [int(buckets.get((*labels, str(n)), 0)) for n in range(len(EFFECT_SECONDS) + 1)],
            total,
        )
        for labels, total in amounts(summary, metric + SUM).items()
    ]


def test_the_numbers_of_a_run_are_those_of_its_journal() -> None:
    """Tries of all processes count, and a lost one costs an unknown amount."""
    summary = summarize(journal())

    assert amounts(summary, "signoff_effects_total") == {
        ("ask", "claude", "lost"): 1,
        ("ask", "claude", "ok"): 1,
        ("ask", "claude", "retried"): 1,
        ("ask", "codex", "error"): 1,
        ("wait", "", "ok"): 1,
    }
    taken = counts(summary, "signoff_effect_seconds")
    assert [(kind, sum(each), total) for [kind], each, total in taken] == [
        ("ask", 4, 2 + 0 + 10 + 3),
        ("wait", 1, 928),
    ]
    assert amounts(summary, "signoff_tokens_total") == {("claude", "opus-1"): 120}
    assert amounts(summary, "signoff_spend_usd_total") == {("claude", "opus-1"): 0.5}
    assert amounts(summary, "signoff_spend_unknown_total") == {
        ("claude", "opus"): 2,
        ("claude", "opus-1"): 0,
        ("codex", "opus"): 1,
    }
    assert summary.in_doubt == []
    assert [total for _, _, total in counts(summary, "workflow_duration_seconds")] == [1006]
    assert amounts(summary, "workflow_runs_total") == {("completed",): 1}
    assert counts(summary, "signoff_claim_seconds") == []
    assert amounts(summary, "signoff_lease_losses_total") == {(): 1}


def test_a_call_in_progress_is_in_doubt() -> None:
    """If its process is gone, it may have been paid for."""
    summary = summarize(journal()[:5])

    assert summary.in_doubt == [["claude", "opus", 1]]
    assert counts(summary, "workflow_duration_seconds") == []


def test_a_stored_summary_is_read_back() -> None:
    """It is what a run adds to every later reading."""
    summary = summarize(journal())

    text = summary.to_text()

    assert RunSummary.from_text(text) == summary
    assert "secret" not in text
    assert len(text) < 1500


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

    ((_, claims, total),) = counts(summary, "signoff_claim_seconds")
    assert (sum(claims), total) == (3, 3 + 1 + 0)
    assert claims[CLAIM_SECONDS.index(1.0)] == claims[CLAIM_SECONDS.index(5.0)] == 1
    assert amounts(summary, "signoff_lease_losses_total") == {(): 0}
