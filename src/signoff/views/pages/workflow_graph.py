"""The graph of a workflow as SVG, with the current position of a run.

It is drawn from the definition that is stored with the run, so runs of every notation have one,
even if their workflow has moved since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from signoff.core.outcome import Outcome
from signoff.views.pages.html import Markup, join, one_line, tag

MOST_STEPS = 60
"""Steps of a graph that is drawn; a longer one would not help anyone."""
_ROW, _BOX, _WIDTH, _LANE = 58, 34, 200, 16
_LABEL, _ENDS = 24, 48
"""Characters of a step's name, and of the ends it leads to."""
_NAMES = {Outcome.DEFAULT.value: "otherwise"}


class _Arrow(NamedTuple):
    """An edge between two steps, by their places in the list."""

    start: int
    end: int
    label: str
    back: bool


def workflow_graph(
    definition: Mapping[str, Any], current: str | None, visits: Mapping[str, int]
) -> Markup:
    """Returns the graph; empty if the definition has no steps, or too many."""
    steps: Sequence[Mapping[str, Any]] = definition.get("steps") or ()
    if not steps or len(steps) > MOST_STEPS:
        return Markup("")
    places = {str(step["id"]): number for number, step in enumerate(steps)}
    arrows = list(_arrows(steps, places))
    ahead = _lanes([each for each in arrows if not each.back and each.end > each.start + 1])
    back = _lanes([each for each in arrows if each.back])
    # Arrows back are on the left of the boxes, those that skip steps on the right: each side is as
    # wide as its lanes, and a label needs some room.
    left = 16 + _LANE * (max(back.values(), default=-1) + 1) + (46 if back else 0)
    right = left + _WIDTH + _LANE * (max(ahead.values(), default=-1) + 1) + (46 if ahead else 0)
    parts = [
        _marker(),
        [_straight(each, left) for each in arrows if not each.back and each.end == each.start + 1],
        [_curve(each, lane, left + _WIDTH, 1) for each, lane in ahead.items()],
        [_curve(each, lane, left, -1) for each, lane in back.items()],
        [_node(step, places, current, visits, left, right) for step in steps],
    ]
    width, height = right + 10 + 6 * _ENDS, _ROW * len(steps) + 6
    where = f"; the run is at {current}" if current in places else ""
    title = tag("title", f"Steps of the workflow: {', '.join(places)}{where}")
    return tag(
        "svg", title, parts,
        viewBox=f"0 0 {width} {height}", role="img", class_="graph", width=width, height=height,
    )  # fmt: skip


def _arrows(steps: Sequence[Mapping[str, Any]], places: Mapping[str, int]) -> Iterator[_Arrow]:
    for step in steps:
        start = places[str(step["id"])]
        by_goal: dict[str, list[str]] = {}
        for name, goal in _edges(step):
            if goal in places:
                by_goal.setdefault(goal, []).append(name)
        for goal, names in by_goal.items():
            yield _Arrow(start, places[goal], ", ".join(names), places[goal] <= start)


def _edges(step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the name of each edge of a step, and where it leads."""
    for name, edge in (step.get("next") or {}).items():
        goal = edge[0] if edge else None
        words = str(name).removeprefix("gate:")
        yield _NAMES.get(words, words), "completed" if goal is None else str(goal)


def _lanes(arrows: Sequence[_Arrow]) -> dict[_Arrow, int]:
    """Returns a lane for each arrow, the short ones next to the boxes, so that none overlap."""
    by_length = sorted(arrows, key=lambda each: abs(each.end - each.start))
    return {arrow: lane for lane, arrow in enumerate(by_length)}


def _marker() -> Markup:
    point = tag("path", d="M0 0 L8 4 L0 8 z")
    return tag(
        "defs",
        tag("marker", point, id="tip", viewBox="0 0 8 8", refX=7, refY=4, markerWidth=7,
            markerHeight=7, orient="auto"),
    )  # fmt: skip


def _straight(arrow: _Arrow, left: int) -> Markup:
    x, top = left + 28, arrow.start * _ROW + _BOX + 3
    line = tag("path", d=f"M{x} {top} V{top + _ROW - _BOX - 2}", marker_end="url(#tip)")
    label = tag("text", one_line(arrow.label, _LABEL), x=x + 10, y=top + 15, class_="edge")
    return tag("g", line, label)


def _curve(arrow: _Arrow, lane: int, x: int, side: int) -> Markup:
    """Draws an arrow beside the boxes: to the right if it leads on, to the left if it loops."""
    out = x + side * (14 + _LANE * lane)
    # A loop leaves its box below the middle and comes back above it, so its ends can be told apart.
    start = arrow.start * _ROW + _BOX // 2 + 3 + 5
    end = arrow.end * _ROW + _BOX // 2 + 3 - (5 if arrow.end <= arrow.start else 0)
    path = f"M{x} {start} H{out} V{end} H{x + side * 2}"
    line = tag("path", d=path, marker_end="url(#tip)", class_="loop" if arrow.back else None)
    anchor = "start" if side > 0 else "end"
    words = one_line(arrow.label, 14)
    label = tag(
        "text", words, x=out + side * 4, y=(start + end) // 2 + 4, text_anchor=anchor, class_="edge"
    )
    return tag("g", line, label)


def _node(
    step: Mapping[str, Any],
    places: Mapping[str, int],
    current: str | None,
    visits: Mapping[str, int],
    left: int,
    right: int,
) -> Markup:
    name, title = str(step["id"]), str(step.get("title") or "")
    top, times = places[name] * _ROW + 3, visits.get(name, 0)
    style = "now" if name == current else "done" if times else "todo"
    box = tag("rect", x=left, y=top, width=_WIDTH, height=_BOX, rx=7)
    mark = "▸ " if name == current else ""
    words = tag("text", mark, one_line(name, _LABEL), x=left + 12, y=top + 21)
    count = tag("text", f"{times}x", x=left + _WIDTH - 10, y=top + 21, text_anchor="end",
                class_="edge") if times > 1 else None  # fmt: skip
    ends = [f"{label} → {goal}" for label, goal in _edges(step) if goal not in places]
    note = one_line(", ".join(ends).replace("_", " "), _ENDS)
    end = tag("text", note, x=right + 8, y=top + 21, class_="edge") if note else None
    about = f"{name}: {title}" if title else name
    return tag("g", tag("title", about), box, words, count, end, class_=style)


def step_list(definition: Mapping[str, Any], current: str | None) -> Markup:
    """Returns the steps and where each leads as text, for readers who do not see the picture."""
    rows = [
        tag(
            "li",
            tag("b", str(step["id"])) if step["id"] == current else str(step["id"]),
            ": ",
            join(_words(step)),
        )
        for step in definition.get("steps") or ()
    ]
    return tag("ol", rows, class_="small")


def _words(step: Mapping[str, Any]) -> Iterator[str]:
    yield "; ".join(f"{label} → {goal.replace('_', ' ')}" for label, goal in _edges(step))
