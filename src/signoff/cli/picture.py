"""The lines of the live view, each built from plain values and the current time."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from signoff.cli.text import one_line
from signoff.core.effects import EffectKind
from signoff.core.outcome import End, Outcome
from signoff.runtime.amounts import UNKNOWN, count, duration, money, partial
from signoff.runtime.narration import LogLine, Weight
from signoff.runtime.timeline import FanOutProgress, Running, StepVisit, Timeline, readable

BAR = 12
"""Characters of a fan-out's bar."""

_MARKS = {
    Outcome.OK: ("✓", "green"),
    Outcome.FAIL: ("✗", "red"),
    Outcome.SKIP: ("»", "dim"),
    Outcome.ITERATE: ("↺", "yellow"),
}
_VERBS = {
    EffectKind.ASK: "asking",
    EffectKind.COMMAND: "running",
    EffectKind.WRITE: "writing",
    EffectKind.READ: "reading",
    EffectKind.REPLACE: "writing",
    EffectKind.PARK: "until",
}


def running_line(running: Running, now: float) -> RenderableType:
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


def done_line(visit: StepVisit) -> RenderableType:
    """Returns the permanent line of a finished step."""
    mark, style = _MARKS.get(visit.outcome or Outcome.OK, ("•", ""))
    text = Text(visit.step)
    text.append(marks(visit), style="dim")
    text.append(f"  {visit.result}", style=style)
    if visit.error:
        text.append(f"  {one_line(visit.error, 200)}", style=style)
    asked = visit.effects.get(EffectKind.ASK.value, 0)
    if asked:
        text.append(f"  {count(asked, 'call')}", style="dim")
    return row(text, Text(duration(visit.seconds), style="dim"), mark=Text(mark, style=style))


def log_line(line: LogLine) -> RenderableType:
    """Returns the permanent line of a log entry."""
    style = "yellow" if line.weight is Weight.TROUBLE else "dim"
    return Text(f"  {one_line(line.text)}", style=style)


def fan_line(fan: FanOutProgress, running: list[Running], now: float) -> RenderableType:
    """Returns the progress of a fan-out, with its slowest item."""
    done, size = len(fan.done), fan.size
    filled = round(BAR * done / size) if size else 0
    text = Text(f"    {one_line(fan.name, 24)}  ", style="")
    text.append("━" * filled, style="green")
    text.append("━" * (BAR - filled), style="dim")
    text.append(f"  {done}/{size}")
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


def marks(visit: StepVisit) -> str:
    """Returns how often a step was entered and attempted, unless both are the first time.

    In most loops a step is entered once a round, which is shown elsewhere.
    """
    parts = []
    if visit.visit not in (1, visit.iteration):
        parts.append(f"entered {visit.visit} times")
    if visit.attempts > 1:
        parts.append(f"attempt {visit.attempts}")
    return f"  {', '.join(parts)}" if parts else ""


def goal(to: str | End | None) -> str:
    """Returns the name of an edge's target."""
    return "end" if to is None else (to.value if isinstance(to, End) else to)


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
