import json

from signoff.telemetry.distribution import EFFECT_SECONDS
from signoff.telemetry.run_summary import RunSummary, summarize
from tests.unit.telemetry.events import journal


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
