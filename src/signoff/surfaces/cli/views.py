"""Shows the progress of a run: not at all, or as plain lines; and handles ctrl-c meanwhile.

The first ctrl-c stops a run cleanly, the second exits at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeVar

from signoff.core import events as ev
from signoff.core.errors import HandlerFailed
from signoff.runtime.ports import Notice, Progress, Recorded, Retrying
from signoff.runtime.process import kill_children
from signoff.surfaces.cli import exits
from signoff.surfaces.cli.output import clean
from signoff.views.narration import LogLine, Narrator, Weight
from signoff.views.timeline import Timeline

if TYPE_CHECKING:
    from signoff.notation import HistoryFold


OpenReview = Callable[[str], "HistoryFold | None"]
"""Returns what follows the review of a run; None if it has no review."""


class View:
    """Observes one or several runs, from before they start until they stop.

    This base class shows nothing; it only keeps the timelines.
    """

    def __init__(self, history: dict[str, Timeline] | None = None) -> None:
        self.timelines = dict(history or {})
        """The timeline of each run so far."""

    def notice(self, notice: Notice) -> None:
        """Records one notice; must return quickly."""
        if isinstance(notice, Recorded):
            self.timelines.setdefault(notice.run, Timeline()).follow(notice.events)

    def stopping(self) -> None:
        """Shows that the user is stopping the run."""

    def release_terminal(self) -> None:
        """Restores the terminal at once; safe to call from a signal handler."""

    def __enter__(self) -> Self:
        """Starts the display."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends the display."""


class PlainView(View):
    """Prints one line per event with its time: for logs, pipes and simple terminals."""

    def __init__(
        self,
        history: dict[str, Timeline] | None = None,
        *,
        verbose: bool = False,
        several: bool = False,
        stream: TextIO | None = None,
        open_review: OpenReview = lambda _run: None,
    ) -> None:
        super().__init__(history)
        self._open_review = open_review
        self._narrators = {run: self._narrator(run, line) for run, line in self.timelines.items()}
        self._verbose = verbose
        self._several = several
        self._stream = stream

    def notice(self, notice: Notice) -> None:
        """Prints the lines of one notice."""
        match notice:
            case Recorded(run=run, events=events):
                for line in self._lines(run, events):
                    self.show(run, line)
            case Retrying(run=run, effect=effect, error=error, seconds=seconds):
                timeline = self.timelines.get(run)
                call = timeline.running.get(effect) if timeline else None
                text = f"{call.label if call else effect}: {error}; again in {seconds:.1f}s"
                self.show(run, LogLine(time.time(), text, Weight.TROUBLE))
            # What a step itself reports is news, what its items report are details. The pieces of
            # answers are not lines yet.
            case Progress(run=run, step=step, scope=scope, text=text) if self._verbose or not scope:
                timeline = self.timelines.get(run)
                if timeline is None or scope not in timeline.running:
                    for each in text.splitlines():
                        self.show(run, LogLine(time.time(), f"{step}| {each}"))

    def stopping(self) -> None:
        """Prints that the run is stopping and how to quit at once."""
        print("stopping; ctrl-c again quits at once", file=self._stream or sys.stderr)

    def _lines(self, run: str, events: Iterable[ev.Event]) -> list[LogLine]:
        narrator = self._narrators.get(run) or self._narrator(run, Timeline())
        self._narrators[run], self.timelines[run] = narrator, narrator.timeline
        lines = [line for event in events for line in narrator.narrate(event)]
        return [line for line in lines if self._verbose or line.weight is not Weight.DETAIL]

    def _narrator(self, run: str, timeline: Timeline) -> Narrator:
        review = self._open_review(run)
        if review is None:
            return Narrator(timeline)
        # Imported here because many runs have no review.
        from signoff.review.pure.history import log_lines

        return Narrator(timeline, news_of=log_lines(review.apply))

    def show(self, run: str, line: LogLine) -> None:
        """Prints one line."""
        print(self.with_time(run, line), file=self._stream or sys.stderr, flush=True)

    def with_time(self, run: str, line: LogLine) -> str:
        """Returns a line with its time, and its run if there are several."""
        clock = time.strftime("%H:%M:%S", time.localtime(line.at))
        whose = f"{run}  " if self._several else ""
        return f"{clock}  {whose}{clean(line.text)}"


T = TypeVar("T")

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
]


class Interrupted(Exception):  # noqa: N818  # an expected end, not an error
    """A signal stopped the work cleanly."""


def run_interruptibly(work: Coroutine[Any, Any, T], view: View) -> T:
    """Runs a coroutine to its end; raises `Interrupted` when it was stopped cleanly."""
    guard = _Guard(view)
    try:
        try:
            return asyncio.run(guard.run(work))
        finally:
            # Only now: the end of the loop ends programs, and a signal must not keep it from that.
            guard.restore()
    except KeyboardInterrupt as error:
        if not guard.active:
            raise
        # Ctrl-c arrives as a signal while the guard is active, so a handler raised this one.
        raise HandlerFailed(
            "the workflow raised KeyboardInterrupt, which would end the program without saving; "
            "change the handler to return or to raise another error, then resume the run"
        ) from error
    except SystemExit as error:
        # Raised in a task that a handler started, it ends the event loop directly. Its code,
        # often 0, says nothing about the run.
        raise HandlerFailed(
            "the workflow called sys.exit(); change the handler to return or to raise another "
            "error, then resume the run"
        ) from error


class _Guard:
    """Catches signals during some work: the first cancels it, the second ends the process."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._asked = False
        self._before: dict[int, Any] = {}
        self.active = False
        """Whether signal handlers were installed."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine; raises `Interrupted` when a signal stopped it."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def stop(_number: int, _frame: FrameType | None) -> None:
            if self._asked:
                quit_at_once(self._view)
            self._asked = True
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(task.cancel)
            # This may interrupt a print to the same stream, which cannot be entered twice.
            with suppress(RuntimeError, OSError):
                self._view.stopping()

        self._before = _install(loop, stop)
        self.active = True
        try:
            return await task
        except asyncio.CancelledError:
            if self._asked:
                raise Interrupted from None
            raise

    def restore(self) -> None:
        """Puts the handlers of before back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def quit_at_once(view: View) -> None:
    """Ends this process and every program it started; its runs can be resumed."""
    for number in _SIGNALS:
        # A key that is held down sends more of them, which would interrupt this and start over.
        signal.signal(number, lambda _number, _frame: None)
    names = "".join(
        f"; to continue it, run: signoff resume {run}" for run in list(view.timelines)[-1:]
    )
    try:
        # Not by what the journal knows of them: a program that was just started is not in it yet.
        kill_children()
        view.release_terminal()
        os.write(2, f"\nquit at once{names}\n".encode())
    finally:
        os._exit(exits.INTERRUPTED)


def _install(
    loop: asyncio.AbstractEventLoop, handler: Callable[[int, FrameType | None], None]
) -> dict[int, Any]:
    """Installs a handler for every signal, and returns those of before.

    The loop forgets that it hears them when it is closed.
    """
    before: dict[int, Any] = {}
    for number in _SIGNALS:
        old = signal.getsignal(number)
        # Only the main thread may install handlers; in another one, the caller handles signals.
        with suppress(ValueError, OSError, RuntimeError):
            # Python runs a signal handler only between bytecodes, and a waiting event loop
            # executes none. Registering the signal with the loop makes it wake up, even if the
            # signal arrives just before it starts to wait or in another thread.
            loop.add_signal_handler(number, lambda: None)
            signal.signal(number, handler)
            before[number] = old
    return before
