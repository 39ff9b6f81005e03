"""The live picture of a run on a terminal.

Steps that are done scroll up as lines that stay. Below them a few lines move: the step
at work, what it waits for outside with the time it has taken, where it may lead, and
what has been spent. The picture is drawn from a timeline, so it can be drawn at any
moment, at any width.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from signoff.cli.terminal import Keyboard
from signoff.cli.text import one_line
from signoff.core.effects import Kind
from signoff.core.outcome import End, Outcome
from signoff.core.workflow import Workflow
from signoff.runtime.amounts import count, duration, money
from signoff.runtime.clock import SystemClock
from signoff.runtime.ports import Clock, Notice, Progress, Recorded, Retrying
from signoff.runtime.timeline import Fan, Running, Timeline, Visit, readable

ROWS = 6
"""Things under way that are listed one by one; more are summed up."""

PAUSES = 2
"""Pauses before another try that are listed one by one."""

BAR = 12
"""Characters of a fan-out's bar."""

PICTURES_PER_SECOND = 10
FLUSH_SECONDS = 0.1
"""Printing past a live picture is dear; steps that take no time share one print."""

_SHOW_CURSOR = "\x1b[?25h"

_MARKS = {
    Outcome.OK: ("✓", "green"),
    Outcome.FAIL: ("✗", "red"),
    Outcome.SKIP: ("»", "dim"),
    Outcome.ITERATE: ("↺", "yellow"),
}
_VERBS = {Kind.ASK: "asking", Kind.COMMAND: "running", Kind.WRITE: "writing", Kind.PARK: "until"}


class LiveView:
    """Draws one run while it goes on."""

    def __init__(
        self,
        workflow: Workflow | None = None,
        known: dict[str, Timeline] | None = None,
        *,
        verbose: bool = False,
        console: Console | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.timelines = dict(known or {})
        self._workflow = workflow
        self._verbose = verbose
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._run = ""
        self._timeline = next(iter(self.timelines.values()), Timeline())
        self._told = sum(visit.outcome is not None for visit in self._timeline.visits)
        self._round = self._timeline.iteration
        self._retries: dict[str, _Pause] = {}
        self._words: dict[str, str] = {}
        self._pending: list[RenderableType] = []
        self._flushed = float("-inf")
        self._stopping = False
        self._keyboard = Keyboard()
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(
            get_renderable=self.picture,
            console=self._console,
            refresh_per_second=PICTURES_PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Self:
        """Begins to draw."""
        self._keyboard.hush()
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Takes the moving part away; the lines of finished steps stay."""
        self.flush()
        self._live.stop()
        self._keyboard.restore()

    def let_go(self) -> None:
        """Gives the terminal back at once, from wherever a signal found us."""
        self._keyboard.restore()
        sys.stderr.write(_SHOW_CURSOR)
        sys.stderr.flush()

    def notice(self, notice: Notice) -> None:
        """Follows the run; what is drawn is drawn by the next picture."""
        titles: list[RenderableType] = []
        with self._lock:
            match notice:
                case Recorded(run=run, events=events):
                    self.timelines[run] = self._timeline
                    self._timeline.follow(events)
                    self._forget_ended()
                    titles = self._new_run(run)
                case Retrying(effect=effect, error=error, seconds=seconds):
                    running = self._timeline.running.get(effect)
                    attempt = running.attempt if running is not None else 1
                    self._retries[effect] = _Pause(error, self._clock.now() + seconds, attempt)
                case Progress(scope=scope, text=text):
                    lines = text.strip().splitlines()
                    if lines:
                        self._words[scope] = lines[-1]
            self._pending += [*titles, *self._newly_finished()]
        if self._clock.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Prints the lines that stay, all that have come together at once."""
        with self._lock:
            lines, self._pending = self._pending, []
            self._flushed = self._clock.monotonic()
        if lines:
            self._console.print(Group(*lines))

    def stopping(self) -> None:
        """Says that the run is being stopped."""
        self._stopping = True

    def picture(self) -> RenderableType:
        """Returns what moves, as it is now."""
        with self._lock:
            now = self._clock.now()
            return Group(
                *self._pending[-ROWS:],
                self._heading(now),
                *self._under_way(now),
                *self._next(),
                self._foot(now),
            )

    def _forget_ended(self) -> None:
        running = self._timeline.running
        self._retries = {
            effect: pause
            for effect, pause in self._retries.items()
            if effect in running and running[effect].attempt == pause.attempt
        }
        self._words = {s: w for s, w in self._words.items() if not s or s in running}

    def _new_run(self, run: str) -> list[RenderableType]:
        if run == self._run:
            return []
        self._run = run
        return [_cut(Text(f"{run}  {self._timeline.workflow}", style="dim"))]

    def _newly_finished(self) -> list[RenderableType]:
        fresh = [v for v in self._timeline.visits[self._told :] if v.outcome is not None]
        lines = list[RenderableType]()
        for visit in fresh:
            lines += [*self._new_round(visit.iteration), done_line(visit)]
        self._told += len(fresh)
        return [*lines, *self._new_round(self._timeline.iteration)]

    def _new_round(self, iteration: int) -> list[RenderableType]:
        if iteration == self._round:
            return []
        self._round = iteration
        return [Text(f"── iteration {iteration} ──", style="dim")]

    def _heading(self, now: float) -> RenderableType:
        line, visit = self._timeline, self._timeline.current
        if visit is None:
            return _row(Text("starting", style="dim"), Text(""), mark=self._spinner)
        name = Text(visit.step, style="bold")
        name.append(_marks(visit), style="dim")
        if self._workflow is not None and visit.step in self._workflow.steps:
            name.append(f"  {one_line(self._workflow[visit.step].title)}", style="dim")
        if visit.feedback:
            name.append(f"  {one_line(visit.feedback, 200)}", style="yellow")
        return _row(name, Text(duration(line.visit_seconds(visit, now))), mark=self._spinner)

    def _under_way(self, now: float) -> Iterator[RenderableType]:
        line = self._timeline
        for fan in line.fans.values():
            yield fan_line(fan, [r for r in line.running.values() if r.fan == fan.name], now)
        alone = [r for r in line.running.values() if not r.fan and r.kind is not Kind.WAIT]
        for running in alone[:ROWS]:
            yield self._running(running, now)
        if len(alone) > ROWS:
            yield Text(f"    and {len(alone) - ROWS} more", style="dim")
        yield from self._pauses(now)
        waits = sum(r.kind is Kind.WAIT for r in line.running.values())
        if waits:
            # The rest is finished first; then the questions are asked, or the run rests.
            yield Text(f"    {count(waits, 'question')} for you, asked in a moment", style="yellow")
        words = next(reversed(self._words.values()), "")
        if words:
            yield _cut(Text(f"    {one_line(words, 300)}", style="dim italic"))

    def _pauses(self, now: float) -> Iterator[RenderableType]:
        pauses = sorted(self._retries.items(), key=lambda pair: pair[1].until)
        for effect, pause in pauses[:PAUSES]:
            when = f"    ↻ {readable(effect)} again in {max(0.0, pause.until - now):.0f}s: "
            yield _cut(Text(when + one_line(pause.error, 200), style="yellow"))
        if len(pauses) > PAUSES:
            yield Text(f"    ↻ {len(pauses) - PAUSES} more pause before another try", "yellow")

    def _running(self, running: Running, now: float) -> RenderableType:
        verb = _VERBS.get(running.kind, running.kind.value)
        text = Text(f"    {verb} ", style="dim")
        text.append(one_line(running.label), style="cyan")
        key = readable(running.id)
        if key not in (running.kind.value, f"write:{running.label}"):
            text.append(f" · {key}", style="dim")
        if running.attempt > 1:
            text.append(f"  attempt {running.attempt}", style="yellow")
        return _row(text, Text(duration(now - running.started_at)))

    def _next(self) -> Iterator[RenderableType]:
        visit = self._timeline.current
        if self._workflow is None or visit is None or visit.step not in self._workflow.steps:
            return
        ways = [f"{way.name} → {_goal(way.to)}" for way in self._workflow.edges.of(visit.step)]
        if ways:
            yield _cut(Text(f"    then {' · '.join(ways)}", style="dim"))

    def _foot(self, now: float) -> RenderableType:
        line = self._timeline
        if self._stopping:
            return Text("  stopping; ctrl-c again quits at once", style="yellow")
        parts = [f"iteration {line.iteration}", duration(line.seconds(now)), *_spent(line)]
        return _cut(Text(f"  {' · '.join(parts)}", style="dim"))


class _Pause(NamedTuple):
    """An effect that is tried again later."""

    error: str
    until: float
    attempt: int


def done_line(visit: Visit) -> RenderableType:
    """Returns the line that stays when a step is done."""
    mark, style = _MARKS.get(visit.outcome or Outcome.OK, ("•", ""))
    text = Text(visit.step)
    text.append(_marks(visit), style="dim")
    outcome = visit.outcome.value if visit.outcome else ""
    text.append(f"  {outcome}", style=style)
    asked = visit.effects.get(Kind.ASK.value, 0)
    if asked:
        text.append(f"  {count(asked, 'call')}", style="dim")
    return _row(text, Text(duration(visit.seconds), style="dim"), mark=Text(mark, style=style))


def fan_line(fan: Fan, running: list[Running], now: float) -> RenderableType:
    """Returns how far a fan-out has come, with the slowest item named."""
    done, size = len(fan.done), fan.size
    filled = round(BAR * done / size) if size else 0
    text = Text(f"    {one_line(fan.name, 24)}  ", style="")
    text.append("━" * filled, style="green")
    text.append("━" * (BAR - filled), style="dim")
    text.append(f"  {done}/{size}")
    if fan.failed:
        text.append(f"  {count(fan.failed, 'failure')}", style="red")
    waits = sum(r.kind is Kind.WAIT for r in running)
    if waits:
        text.append(f"  {waits} for you", style="yellow")
    at_work = [r for r in running if r.kind is not Kind.WAIT]
    if not at_work:
        return _row(text, Text(""))
    slowest = min(at_work, key=lambda r: r.started_at)
    text.append(f"  {len(at_work)} running, slowest ", style="dim")
    text.append(f"[{slowest.item}] {one_line(slowest.label, 30)}", style="cyan")
    return _row(text, Text(duration(now - slowest.started_at)))


def _row(left: Text, right: Text, mark: RenderableType | None = None) -> RenderableType:
    """Returns a line with something at its right edge; the left part gives way."""
    left.no_wrap, left.overflow = True, "ellipsis"
    row = Table.grid(expand=True, padding=0)
    if mark is not None:
        row.add_column(width=2, no_wrap=True)
    row.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    row.add_column(justify="right", no_wrap=True)
    right = Text("  ") + right
    row.add_row(*([mark] if mark is not None else []), left, right)
    return row


def _cut(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _marks(visit: Visit) -> str:
    marks = []
    if visit.visit > 1:
        marks.append(f"visit {visit.visit}")
    if visit.attempts > 1:
        marks.append(f"attempt {visit.attempts}")
    return f"  {', '.join(marks)}" if marks else ""


def _goal(to: str | End | None) -> str:
    return "end" if to is None else (to.value if isinstance(to, End) else to)


def _spent(line: Timeline) -> Iterator[str]:
    spend, limits = line.spend, line.limits
    if not spend.calls:
        return
    yield count(spend.calls, "call") + (f" of {limits.calls}" if limits.calls is not None else "")
    if spend.known_tokens:
        more = "+" if spend.unknown_tokens else ""
        of = f" of {limits.tokens:,}" if limits.tokens is not None else ""
        yield f"{spend.known_tokens:,}{more} tokens{of}"
    of = f" of {money(limits.usd)}" if limits.usd is not None else ""
    if spend.unknown_usd and not spend.known_usd:
        yield f"cost unknown{of}"
    else:
        yield f"{money(spend.known_usd)}{'+' if spend.unknown_usd else ''}{of}"
