"""The live view of a run on a terminal.

The lines of the plain view scroll up. Below them a few lines are redrawn: the current step,
the calls it waits for and for how long, and the cost so far. Everything is drawn from a timeline,
so it can be redrawn at any time and width.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from signoff.core import events as ev
from signoff.core.amounts import UNKNOWN, count, duration, money, partial
from signoff.core.effects import EffectKind
from signoff.core.workflow import Workflow
from signoff.runtime.ports import Clock, Notice, Progress, Recorded, SystemClock
from signoff.surfaces.cli.output import NARROWEST, Keyboard, one_line
from signoff.surfaces.cli.views import OpenReview, PlainView
from signoff.views.narration import LogLine, Weight
from signoff.views.timeline import EffectTry, FanOutProgress, Timeline, readable

ROWS = 6
"""How many running calls are listed one by one; the rest are counted."""

PICTURES_PER_SECOND = 10

KEPT = 600
"""Characters of an answer that are kept; more would not fit a line."""
_DATA = ("{", "[", "```", "<")
"""What answers for programs begin with."""


class StreamTail:
    """Collects the pieces of one answer, of which the end is shown."""

    def __init__(self) -> None:
        self.size = 0
        """Characters so far."""
        self._start = ""
        self._tail = ""

    def add(self, text: str) -> None:
        """Adds a piece."""
        self.size += len(text)
        self._start = (self._start + text).lstrip()[:3]
        self._tail = (self._tail + text)[-KEPT:]

    def shown(self, width: int) -> str:
        """Returns the end of the answer in one line, from the beginning of a word on."""
        if self._start.startswith(_DATA):
            return f"writing its answer, {self.size:,} characters so far"
        text = one_line(self._tail)
        if len(text) <= width:
            return text
        words = text[-(width - 2) :].partition(" ")[2]
        return f"… {words or text[-(width - 2) :]}"


class LiveView(PlainView):
    """Draws one run while it is running; its lines are those of the plain view."""

    def __init__(
        self,
        workflow: Workflow | None = None,
        history: dict[str, Timeline] | None = None,
        *,
        verbose: bool = False,
        console: Console | None = None,
        clock: Clock | None = None,
        open_review: OpenReview = lambda _run: None,
    ) -> None:
        super().__init__(history, verbose=verbose, open_review=open_review)
        self._workflow = workflow
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._run = ""
        self._timeline = next(iter(self.timelines.values()), Timeline())
        self._progress: dict[str, StreamTail] = {}
        """The latest message of a step or an item, and the streamed answers of calls."""
        self._pending: list[RenderableType] = []
        self._stopping = False
        self._keyboard = Keyboard()
        self._spinner = Spinner("dots", style="cyan")
        # Our own thread prints and redraws: if another thread printed a line while the picture is
        # drawn, a fragment of it would stay on the screen.
        self._live = Live(
            get_renderable=self.picture, console=self._console, auto_refresh=False, transient=True
        )
        self._ended = threading.Event()
        self._redrawing = threading.Thread(
            target=self._redraw, name="signoff-live-view", daemon=True
        )

    def __enter__(self) -> Self:
        """Starts to draw."""
        self._keyboard.mute()
        self._live.start(refresh=True)
        self._redrawing.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Removes the live part; the lines stay."""
        self._ended.set()
        self._redrawing.join()
        self.flush()
        self._live.stop()
        self._keyboard.restore()

    def release_terminal(self) -> None:
        """Restores the terminal at once; safe to call from a signal handler."""
        self._keyboard.restore()

    def notice(self, notice: Notice) -> None:
        """Records what happened; the next redraw shows it."""
        with self._lock:
            super().notice(notice)
            match notice:
                case Recorded(run=run):
                    self._run, self._timeline = run, self.timelines[run]
                    running = self._timeline.running
                    # What a step itself reports ends with the step.
                    ended = any(isinstance(event, ev.StepFinished) for event in notice.events)
                    self._progress = {
                        scope: tail
                        for scope, tail in self._progress.items()
                        if scope in running or (not scope and not ended)
                    }
                case Progress(scope=scope, text=text):
                    self._hear(scope, text)

    def show(self, run: str, line: LogLine) -> None:
        """Keeps a line until the next redraw: printing above a live view is expensive."""
        style = "yellow" if line.weight is Weight.TROUBLE else ""
        self._pending.append(Text(self.with_time(run, line), style=style))

    def _hear(self, scope: str, text: str) -> None:
        """Keeps the last line of a message; the pieces of a streamed answer are joined."""
        lines = text.strip().splitlines()
        if scope in self._timeline.running:
            self._progress.setdefault(scope, StreamTail()).add(text)
        elif lines:
            self._progress[scope] = StreamTail()
            self._progress[scope].add(lines[-1])

    def flush(self) -> None:
        """Prints all lines that have collected, in one go, and draws the picture below them."""
        with self._lock:
            lines, self._pending = self._pending, []
        if lines:
            self._console.print(Group(*lines))
        self._live.refresh()

    def stopping(self) -> None:
        """Shows that the run is being stopped."""
        self._stopping = True

    def picture(self) -> RenderableType:
        """Returns the part that is redrawn, as of now."""
        with self._lock:
            # Until the run is resumed, its clock does not advance, and nothing of it is running.
            now = self._clock.now() if self._run else self._timeline.state.updated_at
            under_way = self._under_way(now) if self._run else ()
            return Group(self._heading(now), *under_way, self._foot(now))

    def _redraw(self) -> None:
        while not self._ended.wait(1 / PICTURES_PER_SECOND):
            self.flush()

    def _heading(self, now: float) -> RenderableType:
        line, visit = self._timeline, self._timeline.current
        if visit is None:
            return row(Text("starting", style="dim"), Text(""), mark=self._spinner)
        name = Text(visit.step, style="bold")
        if visit.attempts > 1:
            name.append(f"  attempt {visit.attempts}", style="dim")
        if self._workflow is not None and visit.step in self._workflow.steps:
            name.append(f"  {one_line(self._workflow[visit.step].title)}", style="dim")
        if visit.feedback:
            name.append(f"  {one_line(visit.feedback, 200)}", style="yellow")
        return row(name, Text(duration(line.visit_seconds(visit, now))), mark=self._spinner)

    def _under_way(self, now: float) -> Iterator[RenderableType]:
        line = self._timeline
        for fan in line.fans.values():
            yield fan_line(fan, [r for r in line.running.values() if r.fan == fan.name], now)
        alone = [r for r in line.running.values() if not r.fan and r.kind is not EffectKind.WAIT]
        for running in alone[:ROWS]:
            yield running_line(running, now)
        if len(alone) > ROWS:
            yield Text(f"    and {len(alone) - ROWS} more", style="dim")
        waits = sum(r.kind is EffectKind.WAIT for r in line.running.values())
        if waits:
            # Other calls finish first; then the questions are asked, or the run waits.
            yield Text(f"    {count(waits, 'request')} for you, asked in a moment", style="yellow")
        heard = next(reversed(self._progress.values()), None)
        if heard is not None and heard.size:
            shown = heard.shown(max(NARROWEST, self._console.width - 6))
            yield cut(Text(f"    {one_line(shown)}", style="dim italic"))

    def _foot(self, now: float) -> RenderableType:
        line = self._timeline
        if self._stopping:
            return Text("  stopping; ctrl-c again quits at once", style="yellow")
        parts = [f"round {line.state.iteration}", duration(line.seconds(now)), *spent(line)]
        return cut(Text(f"  {' · '.join(parts)}", style="dim"))


_VERBS = {
    EffectKind.ASK: "asking",
    EffectKind.COMMAND: "running",
    EffectKind.WRITE: "writing",
    EffectKind.READ: "reading",
    EffectKind.REPLACE: "writing",
    EffectKind.PARK: "until",
}


def running_line(running: EffectTry, now: float) -> RenderableType:
    """Returns the line of a running call, with its duration."""
    verb = _VERBS.get(running.kind, running.kind.value)
    text = Text(f"    {verb} ", style="dim")
    text.append(one_line(running.label), style="cyan")
    key = readable(running.id)
    if key not in (running.kind.value, f"write:{running.label}"):
        text.append(f" · {key}", style="dim")
    if running.attempt > 1:
        text.append(f"  attempt {running.attempt}", style="yellow")
    return row(text, Text(duration(now - running.started_at)))


def fan_line(fan: FanOutProgress, running: list[EffectTry], now: float) -> RenderableType:
    """Returns the progress of a fan-out, with its slowest item."""
    done, size = len(fan.done), fan.size
    text = Text(f"    {one_line(fan.name, 24)}  {done}/{size}")
    if fan.failed:
        text.append(f"  {count(fan.failed, 'failure')}", style="red")
    waits = sum(r.kind is EffectKind.WAIT for r in running)
    if waits:
        text.append(f"  {waits} for you", style="yellow")
    at_work = [r for r in running if r.kind is not EffectKind.WAIT]
    if not at_work:
        return row(text, Text(""))
    slowest = min(at_work, key=lambda r: r.started_at)
    text.append(f"  {len(at_work)} running, slowest ", style="dim")
    what = one_line(slowest.name, 30) or f"[{slowest.item}]"
    text.append(f"{what} {one_line(slowest.label, 30)}", style="cyan")
    return row(text, Text(duration(now - slowest.started_at)))


def row(left: Text, right: Text, mark: RenderableType | None = None) -> RenderableType:
    """Returns a line with right-aligned text; the left part is cut if it does not fit."""
    grid = Table.grid(expand=True, padding=0)
    if mark is not None:
        grid.add_column(width=2, no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(*([mark] if mark is not None else []), cut(left), Text("  ") + right)
    return grid


def cut(text: Text) -> Text:
    """Keeps a text on one line, whatever the width."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def spent(line: Timeline) -> Iterator[str]:
    """Yields the amounts spent and their limits."""
    spend, limits = line.spend, line.state.limits
    if not spend.calls:
        return
    yield count(spend.calls, "call") + (f" of {limits.calls}" if limits.calls is not None else "")
    if spend.known_tokens:
        tokens = partial(f"{spend.known_tokens:,}", spend.known_tokens, spend.unknown_tokens)
        of = f" of {limits.tokens:,}" if limits.tokens is not None else ""
        cached = f" ({spend.known_cached:,} cached)" if spend.known_cached else ""
        yield f"{tokens} tokens{of}{cached}"
    of = f" of {money(limits.usd)}" if limits.usd is not None else ""
    cost = partial(money(spend.known_usd), spend.known_usd, spend.unknown_usd)
    yield f"cost {UNKNOWN}{of}" if cost == UNKNOWN else f"{cost}{of}"
