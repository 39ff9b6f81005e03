"""The chart of rounds: the open findings after each round, stacked by severity, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signoff.core.severity import Severity
from signoff.pages.html import Markup, join, tag
from signoff.review.history import Round

WIDTH, HEIGHT = 720, 200
_LEFT, _BOTTOM, _TOP = 34, 26, 14
MOST_BAR = 64
"""The widest bar; a chart of two rounds would otherwise be two blocks."""
MOST_LABELS = 24
"""Rounds that have a number below their bar; of more, only some have one."""


def rounds_chart(rounds: Sequence[Round]) -> Markup:
    """Returns the chart with its legend; empty if no round was reviewed."""
    counted = [each for each in rounds if each.counts]
    if not counted:
        return Markup("")
    most = max(1, *(_total(each) for each in counted))
    slot = (WIDTH - _LEFT) / len(counted)
    bars = [_bar(each, number, slot, most, len(counted)) for number, each in enumerate(counted)]
    words = ", ".join(f"round {each.number}: {_total(each)} open" for each in counted)
    chart = tag(
        "svg", tag("title", f"Open findings after each round: {words}"), _grid(most), bars,
        viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip
    used = [s for s in Severity if any(each.counts["open"].get(s.value) for each in counted)]
    legend = tag(
        "div",
        [tag("span", tag("i", class_=s.key), s.value.capitalize()) for s in used],
        class_="legend",
    )
    return join([chart, legend])


def _total(each: Round) -> int:
    return sum(int(number) for number in each.counts["open"].values())


def _grid(most: int) -> Iterator[Markup]:
    for value in sorted({0, most // 2, most}):
        y = _y(value, most)
        yield tag("line", x1=_LEFT, x2=WIDTH, y1=y, y2=y, class_="grid")
        yield tag("text", value, x=_LEFT - 8, y=y + 4, text_anchor="end")


def _bar(each: Round, number: int, slot: float, most: int, total: int) -> Markup:
    width = round(min(slot * 0.62, MOST_BAR), 1)
    left = round(_LEFT + slot * number + (slot - width) / 2, 1)
    parts, below = [], 0
    # The most severe ones are at the bottom, where their numbers can be compared best.
    for severity in Severity:
        found = int(each.counts["open"].get(severity.value, 0))
        if found:
            top, bottom = _y(below + found, most), _y(below, most)
            parts.append(
                tag("rect", x=left, y=top, width=width, height=round(bottom - top, 1), rx=2,
                    class_=severity.key)
            )  # fmt: skip
            below += found
    middle = round(left + width / 2, 1)
    if number % (total // MOST_LABELS + 1) == 0:
        parts.append(tag("text", each.number, x=middle, y=HEIGHT - 8, text_anchor="middle"))
        parts.append(tag("text", below, x=middle, y=_y(below, most) - 4, text_anchor="middle"))
    return tag("g", tag("title", f"Round {each.number}: {below} open"), parts)


def _y(value: float, most: int) -> float:
    return round(HEIGHT - _BOTTOM - value / most * (HEIGHT - _BOTTOM - _TOP), 1)
