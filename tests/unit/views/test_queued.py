import threading
from collections.abc import Iterator

import pytest

from signoff.core import events as ev
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.runtime.ports import Notice, Progress, Recorded
from signoff.views.queued import (
    QUEUED_NOTICES,
    QUEUED_PROGRESS,
    QueuedObserver,
    close_observers,
)
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

NOTICE = Recorded("one", [ev.RunResumed()], 3)


class Listener:
    """Keeps what it gets, in the thread that brings it."""

    def __init__(self) -> None:
        self.got: list[Notice] = []
        self.threads: set[int] = set()
        self.closed = False

    def notice(self, notice: Notice) -> None:
        self.got.append(notice)
        self.threads.add(threading.get_ident())

    def close(self) -> None:
        self.closed = True


class Hanging:
    """Hangs at its first notice until the test is over."""

    def __init__(self) -> None:
        self.busy = threading.Event()
        self.over = threading.Event()

    def notice(self, notice: Notice) -> None:
        self.busy.set()
        self.over.wait(PATIENCE_SECONDS)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    observer = Hanging()
    yield observer
    observer.over.set()


def test_notices_arrive_in_order_in_another_thread() -> None:
    """The thread of the engine is the one that no observer may hold up."""
    listener = Listener()
    queued = QueuedObserver("listener", listener)
    notices = [Recorded("one", [], seq) for seq in range(100)]

    for each in notices:
        queued.notice(each)
    close_observers([queued])

    assert listener.got == notices
    assert threading.get_ident() not in listener.threads
    assert listener.closed


def test_an_observer_that_got_no_notice_is_closed_too() -> None:
    """A server that it opened has to be closed."""
    listener = Listener()

    close_observers([QueuedObserver("listener", listener)])

    assert listener.closed


def test_one_that_raises_is_reported_once_and_gets_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A thousand events must not print a thousand tracebacks."""

    class Broken(Listener):
        def notice(self, notice: Notice) -> None:
            super().notice(notice)
            raise ValueError("a bug")

        def close(self) -> None:
            raise OSError("No space left on device")

    broken, fine = Broken(), Listener()
    queued = [QueuedObserver("broken", broken), QueuedObserver("fine", fine)]

    for each in queued * 3:
        each.notice(NOTICE)
    close_observers(queued)

    assert len(broken.got) == len(fine.got) == 3
    assert caplog.messages == ["observer 'broken' failed and may miss events"]


def test_one_that_hangs_is_cut_off_and_the_others_are_finished(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    """The user waits for the shell, not for a collector that is gone."""
    fine = Listener()
    queued = [QueuedObserver("hangs", hanging), QueuedObserver("fine", fine)]
    for each in queued:
        each.notice(NOTICE)
    assert hanging.busy.wait(PATIENCE_SECONDS)

    wait_until(lambda: fine.got)
    close_observers(queued, seconds=0.05)

    assert "observer 'hangs' was still busy and is cut off" in caplog.messages
    wait_until(lambda: fine.closed)


def test_notices_beyond_the_queue_are_dropped_and_counted(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    """An observer that is stuck for days must not fill the memory."""
    queued = QueuedObserver("hangs", hanging)
    queued.notice(NOTICE)
    assert hanging.busy.wait(PATIENCE_SECONDS)

    for _ in range(QUEUED_NOTICES + 7):
        queued.notice(NOTICE)
    close_observers([queued], seconds=0)

    assert caplog.messages[-1] == "observer 'hangs' was too slow and missed 7 events"


def test_streamed_output_leaves_room_for_what_was_recorded(hanging: Hanging) -> None:
    """A model that streams for minutes would otherwise push the end of its run out."""
    queued = QueuedObserver("hangs", hanging)
    queued.notice(NOTICE)
    assert hanging.busy.wait(PATIENCE_SECONDS)

    for _ in range(QUEUED_NOTICES):
        queued.notice(Progress("one", "draft", "", "word"))

    assert queued._queue.qsize() == QUEUED_PROGRESS


def test_ctrl_c_ends_the_wait_and_nothing_else(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has ended; its exit code must not become 130 because a webhook is slow."""
    queued = [QueuedObserver(name, hanging) for name in ("a", "b")]
    for each in queued:
        each.notice(NOTICE)
    waits: list[float] = []

    def interrupted(_self: QueuedObserver, seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(QueuedObserver, "join", interrupted)

    close_observers(queued, seconds=60)

    assert waits[0] > 0
    assert waits[1:] == [0]


async def test_runs_do_not_notice_observers_that_hang_or_raise(
    bench: EngineFixture, hanging: Hanging
) -> None:
    """A failed observer never breaks a run, and never delays one."""

    class Broken:
        def notice(self, notice: Notice) -> None:
            raise OSError("No space left on device")

    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
        for number in range(50):
            await ctx.ask("claude", f"Part {number}", key="part")
        return Outcome.OK, {}

    bench.agent.on("", "fine")
    watching = [QueuedObserver("hangs", hanging), QueuedObserver("broken", Broken())]
    await bench.restart(observers=watching)

    result = await bench.start(one_step(work))

    assert result.ok
    assert not hanging.over.is_set()
    close_observers(watching, seconds=0)


def test_threads_that_report_at_once_share_one_thread() -> None:
    """Agents report progress from threads of their own; order would be lost with two."""
    listener = Listener()
    queued = QueuedObserver("listener", listener)
    together = threading.Barrier(8)

    def report() -> None:
        together.wait(PATIENCE_SECONDS)
        queued.notice(Progress("one", "draft", "", "word"))

    threads = [threading.Thread(target=report) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    close_observers([queued])

    assert len(listener.got) == 8
    assert len(listener.threads) == 1
