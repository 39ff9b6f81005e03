"""Shows the progress of a run: not at all, or as plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Self, TextIO

from signoff.cli.streams import StreamTail
from signoff.cli.text import clean
from signoff.core import events as ev
from signoff.runtime.narration import LogLine, Narrator, Weight
from signoff.runtime.ports import Notice, Progress, Recorded, Retrying
from signoff.runtime.timeline import Timeline

if TYPE_CHECKING:
    from signoff.notation import HistoryFold
    from signoff.review.news import ReviewNews

OpenReview = Callable[[str], "HistoryFold | None"]
"""Returns what follows the review of a run; None if it has no review."""


class View:
    """Observes one or several runs, from before they start until they stop.

    This base class shows nothing; it only keeps the timelines.
    """

    def __init__(
        self,
        history: dict[str, Timeline] | None = None,
        open_review: OpenReview = lambda _run: None,
    ) -> None:
        self.timelines = dict(history or {})
        """The timeline of each run so far."""
        self._open_review = open_review
        self._reviews: dict[str, HistoryFold | None] = {
            run: open_review(run) for run in self.timelines
        }

    def notice(self, notice: Notice) -> None:
        """Records one notice; must return quickly."""
        if isinstance(notice, Recorded):
            self.timelines.setdefault(notice.run, Timeline()).follow(notice.events)

    def news(self, run: str, event: ev.Event) -> Sequence[ReviewNews]:
        """Returns what an event adds to the review of its run."""
        if run not in self._reviews:
            self._reviews[run] = self._open_review(run)
        review = self._reviews[run]
        return review.apply(event) if review is not None else ()

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
        super().__init__(history, open_review)
        self._narrators = {run: Narrator(line) for run, line in self.timelines.items()}
        self._verbose = verbose
        self._several = several
        self._stream = stream
        self._answers: dict[str, StreamTail] = {}
        """The streamed answers of running calls, by effect."""

    def notice(self, notice: Notice) -> None:
        """Prints the lines of one notice."""
        match notice:
            case Recorded(run=run, events=events):
                for line in self._lines(run, events):
                    self._print(line.at, run, line.text)
            case Retrying(run=run, effect=effect, error=error, seconds=seconds):
                who = _label(self.timelines.get(run), effect)
                self._print(time.time(), run, f"{who}: {error}; again in {seconds:.1f}s")
            # What a step itself reports is news; items and streamed answers are details.
            case Progress(run=run, step=step, scope=scope, text=text) if self._verbose or not scope:
                for each in self._whole_lines(run, scope, clean(text)):
                    self._print(time.time(), run, f"{step}| {each}")

    def stopping(self) -> None:
        """Prints that the run is stopping and how to quit at once."""
        print("stopping; ctrl-c again quits at once", file=self._stream or sys.stderr)

    def _lines(self, run: str, events: Iterable[ev.Event]) -> list[LogLine]:
        narrator = self._narrators.setdefault(run, Narrator())
        self.timelines[run] = narrator.timeline
        lines: list[LogLine] = []
        for event in events:
            if isinstance(event, ev.EffectFinished) and event.id in self._answers:
                rest = self._answers.pop(event.id).rest()
                step = narrator.timeline.state.step or ""
                lines += [LogLine(event.at, f"{step}| {each}") for each in rest]
            # A step ends after what it has found and changed.
            lines += [LogLine(event.at, text) for text in self._news_lines(run, event)]
            lines += narrator.narrate(event)
        return [line for line in lines if self._verbose or line.weight is not Weight.DETAIL]

    def _news_lines(self, run: str, event: ev.Event) -> list[str]:
        if not (news := self.news(run, event)):
            return []
        from signoff.cli.review_lines import news_lines

        return [text.strip() for each in news for text, _ in news_lines(each)]

    def _whole_lines(self, run: str, scope: str, text: str) -> list[str]:
        """Returns messages as they are, and of a streamed answer the lines that are complete."""
        timeline = self.timelines.get(run)
        if timeline is None or scope not in timeline.running:
            return text.splitlines()
        return self._answers.setdefault(scope, StreamTail()).add(text)

    def _print(self, at: float, run: str, text: str) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(at))
        whose = f"{run}  " if self._several else ""
        print(f"{clock}  {whose}{clean(text)}", file=self._stream or sys.stderr, flush=True)


def _label(timeline: Timeline | None, effect: str) -> str:
    running = timeline.running.get(effect) if timeline else None
    return running.label if running else effect
