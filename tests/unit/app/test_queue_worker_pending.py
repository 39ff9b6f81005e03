from pathlib import Path

import pytest

from signoff.app.project import Project, open_project
from signoff.app.queue_worker import has_work, rest_of
from signoff.core.outcome import Status
from signoff.errors import RunBusy
from tests.store_suite.journal_writer import JournalWriter, new_request, start_run

HOUR = 3600.0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)


def rested(project: Project, status: Status, due_in: float | None = None) -> JournalWriter:
    """Returns a run that has come to rest."""
    run = start_run(project.store, "one")
    due_at = None if due_in is None else project.clock.now() + due_in
    run.append(status=status, release=True, due_at=due_at, opened=[new_request()])
    return run


@pytest.mark.parametrize(
    ("status", "due_in", "expected"),
    [
        (Status.QUEUED, None, True),
        (Status.PARKED, -HOUR, True),
        (Status.PARKED, HOUR, False),
        (Status.WAITING, -HOUR, True),
        (Status.WAITING, HOUR, False),
        (Status.WAITING, None, False),
        (Status.COMPLETED, None, False),
        (Status.FAILED, -HOUR, False),
    ],
)
def test_a_run_continues_when_it_is_queued_or_its_time_has_come(
    project: Project, status: Status, due_in: float | None, expected: bool
) -> None:
    """A dispatcher may ask for it at any time."""
    with project:
        rested(project, status, due_in)

        assert has_work(project, project.store.row("one")) is expected


def test_an_answer_lets_a_waiting_run_continue(project: Project) -> None:
    """Even before its deadline."""
    with project:
        rested(project, Status.WAITING, HOUR)
        (item,) = project.store.items("one")
        project.store.answer(item.id, '{"value": true}', "ann", 1.0, item.digest)

        assert has_work(project, project.store.row("one"))


def test_a_dispatcher_learns_for_how_long_a_run_rests(project: Project) -> None:
    """It comes back then, and not again after the run has ended."""
    with project:
        run = rested(project, Status.PARKED, HOUR)
        rest = rest_of(project, "one")
        assert rest.seconds == pytest.approx(HOUR, abs=HOUR / 2)
        run.append(status=Status.RUNNING)
        with pytest.raises(RunBusy, match="another process"):
            rest_of(project, "one")
        run.append(status=Status.COMPLETED, release=True)
        assert rest_of(project, "one").ended
