import json
from collections.abc import Iterable, Mapping, Sequence

import pytest
from prometheus_client.parser import text_string_to_metric_families

from signoff.app.runs.run_records import metrics_text
from signoff.app.settings.project import Project
from signoff.core import events as ev
from signoff.core.codec import encode
from signoff.core.errors import StoreBusy
from signoff.core.fold import fold
from signoff.core.outcome import Outcome, Status
from signoff.pair.session import REASONS
from signoff.runtime.owner import this_process
from signoff.runtime.store_port import JournalRow, RunId
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock
from signoff.views.metrics import PAIR_REASONS, VERSION
from tests.store_suite.journal_writer import JournalWriter, new_request
from tests.unit.views.events import START, at, journal


def put_run(
    project: Project,
    name: str,
    events: Sequence[ev.Event],
    description: Mapping[str, str] | None = None,
    **changes: object,
) -> JournalWriter:
    """Stores a run as the processes that drove it left it."""
    writer = JournalWriter(project.store, name)
    status = fold(events).status
    texts = f"[{','.join(encode(ev.to_json(event), {}) for event in events)}]"
    first = writer.first(
        events=texts, status=status, release=status is not Status.RUNNING, **changes
    )
    if description is not None and first.new is not None:
        first.new.description = json.dumps(description)
    writer.put(first)
    return writer


def text_of(project: Project) -> str:
    """Returns the metrics as they are now."""
    return metrics_text(project.store, project.clock.now())


def read(project: Project) -> dict[str, float]:
    """Reads the metrics as Prometheus does: by name and labels."""
    return {
        f"{sample.name}{sorted(sample.labels.items()) or ''}": sample.value
        for family in text_string_to_metric_families(text_of(project))
        for sample in family.samples
        if sample.value and not sample.name.endswith("_bucket")
    }


def test_the_metrics_are_the_true_numbers_of_all_runs(project: Project) -> None:
    """They decide on alerts, and on whether a bill is right."""
    put_run(project, "one", journal())
    put_run(project, "two", journal())
    put_run(project, "waits", journal()[:12], opened=[new_request(opened_at=START)])

    assert read(project) == {
        "workflow_runs_total[('completion_reason', 'completed')]": 2,
        "workflow_duration_seconds_sum": 2012,
        "workflow_duration_seconds_count": 2,
        "signoff_effects_total[('agent', ''), ('kind', 'wait'), ('result', 'ok')]": 2,
        "signoff_effects_total[('agent', 'claude'), ('kind', 'ask'), ('result', 'lost')]": 3,
        "signoff_effects_total[('agent', 'claude'), ('kind', 'ask'), ('result', 'ok')]": 3,
        "signoff_effects_total[('agent', 'claude'), ('kind', 'ask'), ('result', 'retried')]": 3,
        "signoff_effects_total[('agent', 'codex'), ('kind', 'ask'), ('result', 'error')]": 2,
        "signoff_effect_seconds_sum[('kind', 'ask')]": 42,
        "signoff_effect_seconds_count[('kind', 'ask')]": 11,
        "signoff_effect_seconds_sum[('kind', 'wait')]": 1856,
        "signoff_effect_seconds_count[('kind', 'wait')]": 2,
        "signoff_spend_usd_total[('agent', 'claude'), ('model', 'opus-1')]": 1.5,
        "signoff_spend_unknown_total[('agent', 'claude'), ('model', 'opus')]": 6,
        "signoff_spend_unknown_total[('agent', 'codex'), ('model', 'opus')]": 2,
        "signoff_tokens_total[('agent', 'claude'), ('model', 'opus-1')]": 360,
        "signoff_tokens_unknown_total[('agent', 'claude'), ('model', 'opus')]": 6,
        "signoff_tokens_unknown_total[('agent', 'codex'), ('model', 'opus')]": 2,
        "signoff_inbox_open[('kind', 'question')]": 1,
        "signoff_lease_losses_total": 3,
        "signoff_runs[('status', 'completed')]": 2,
        "signoff_runs[('status', 'waiting')]": 1,
    }


def test_a_pair_is_counted_by_its_own_reason_and_its_turns(project: Project) -> None:
    """The seed's dashboards ask for approved and max_turns, and know no statuses of runs."""
    turn = {"text": "", "approved": False, "candidates": [], "score": None, "too_long": False}
    turns = [{**turn, "turn": 1, "feedback": "no"}, {**turn, "turn": 2, "feedback": "no"}]
    done = ev.StepFinished(Outcome.FAIL, "w", None, {"set": {"turns": turns, "max_turns": 2}})
    ended = [*journal()[:2], at(5, done), at(5, ev.RunStopped(Status.LIMIT))]
    put_run(project, "pair", ended, description={"notation": "pair"})

    numbers = read(project)

    assert numbers["workflow_runs_total[('completion_reason', 'max_turns')]"] == 1
    assert (numbers["workflow_turns_sum"], numbers["workflow_turns_count"]) == (2, 1)
    assert {each: reason.value for each, reason in REASONS.items()} == PAIR_REASONS


def test_a_notation_that_cannot_read_a_state_hides_no_other_run(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    """Notations are plug-ins, and a bug in one must not blind the operators."""
    done = ev.StepFinished(Outcome.OK, "w", None, {"set": {"turns": [{"no": "turn"}]}})
    ended = [*journal()[:2], at(5, done), at(5, ev.RunStopped(Status.COMPLETED))]
    put_run(project, "bad", ended, description={"notation": "pair"})
    put_run(project, "good", journal())

    numbers = read(project)

    assert numbers["workflow_runs_total[('completion_reason', 'completed')]"] == 1
    assert numbers["signoff_runs_unreadable"] == 1
    assert "run bad" in caplog.text


def test_only_runs_that_have_changed_are_read_again(project: Project) -> None:
    """Ten thousand journals must not be decoded for each reading."""
    store = ReadingStore()
    counted = Project(project.home, project.settings, store, project.cwd, project.clock)
    put_run(counted, "done", journal())
    grows = put_run(counted, "grows", journal()[:5])
    metrics_text(store, 0.0)
    assert store.read == ["grows", "done"]

    more = f"[{encode(ev.to_json(journal()[5]), {})}]"
    grows.append(events=more)
    metrics_text(store, 0.0)

    assert store.read == ["grows", "done", "grows"]


def test_a_damaged_run_is_counted_and_hides_no_other(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    """One bad row in the database must not blind the operators."""
    put_run(project, "one", journal())
    bad = JournalWriter(project.store, "bad")
    bad.begin(events='[{"e": "no such event"}]', status=Status.COMPLETED, release=True)

    numbers = read(project)

    assert numbers["signoff_runs_unreadable"] == 1
    assert numbers["signoff_runs[('status', 'completed')]"] == 2
    assert numbers["workflow_runs_total[('completion_reason', 'completed')]"] == 1
    assert "run bad" in caplog.text


def test_a_call_of_a_process_that_died_is_an_unknown_cost(project: Project) -> None:
    """It may have been paid for, and counting it as 0 would hide that."""
    put_run(project, "killed", journal()[:5])

    numbers = read(project)

    unknown = "signoff_spend_unknown_total[('agent', 'claude'), ('model', 'opus')]"
    assert numbers[unknown] == 2
    assert numbers["signoff_runs[('status', 'interrupted')]"] == 1


def test_no_name_of_a_run_and_no_text_is_in_the_metrics(project: Project) -> None:
    """Each would be a series of its own, and prompts are nobody else's business."""
    put_run(project, "name-of-the-run", journal())

    text = text_of(project)

    assert "name-of-the-run" not in text
    assert "secret" not in text


def test_a_locked_database_is_read_all_the_same(project: Project) -> None:
    """A run that writes all the time must not stop the metrics."""
    store = LockedStore()
    locked = Project(project.home, project.settings, store, project.cwd, project.clock)
    put_run(locked, "one", journal())

    assert metrics_text(store, 0.0) == metrics_text(store, 0.0)
    assert store.summaries(VERSION) == {}


class ReadingStore(MemoryStore):
    """Notes whose journal is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        self.read.append(next(row.name for row in self.rows() if row.id == run))
        return super().journal(run, after)


class LockedStore(MemoryStore):
    """Cannot be written by metrics, because a run holds its lock."""

    def keep_summaries(self, version: int, summaries: Iterable[tuple[RunId, int, str]]) -> None:
        raise StoreBusy("locked")


def test_the_queue_and_its_workers_are_counted(project: Project, clock: FrozenClock) -> None:
    """Alerts on too few workers build on it."""
    for name, needs, age in (("old", (), 30.0), ("stuck", ("gpu",), 20.0)):
        writer = JournalWriter(project.store, name)
        writer.begin(needs=needs, status=Status.QUEUED, release=True, at=clock.now() - age)
    project.store.register(this_process(), 3, [])
    project.store.register(this_process(), 4, [])

    numbers = read(project)

    assert numbers["signoff_runs[('status', 'queued')]"] == 2
    assert numbers["signoff_queue_oldest_seconds"] == 30
    assert numbers["signoff_queue_stuck"] == 1
    assert (numbers["signoff_workers"], numbers["signoff_worker_slots"]) == (2, 7)
