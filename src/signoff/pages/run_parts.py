"""What every page about a run shows: its figures, decisions, cost and steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from signoff.core.outcome import NOT_ENDED, Status
from signoff.core.requests import RequestKind
from signoff.core.severity import Severity
from signoff.core.spend import LedgerEntry
from signoff.core.words import VERDICT_WORDS, FindingStatus
from signoff.pages.diff import finding_link
from signoff.pages.html import (
    Content,
    Markup,
    join,
    moment,
    scrollable,
    section,
    sentence,
    table,
    tag,
)
from signoff.review.finding import Finding
from signoff.review.history import Judgment, ReviewHistory, Round, describe_result, open_counts
from signoff.runtime.amounts import count, duration, money, partial
from signoff.runtime.narration import describe_answer
from signoff.runtime.project_files import written_note
from signoff.runtime.store_port import LedgerTotal
from signoff.runtime.timeline import Timeline


def status_words(status: Status, history: ReviewHistory | None) -> str:
    """Returns the status of a run, with the verdict of its review."""
    words = "waiting for a human" if status is Status.WAITING else status.value.replace("_", " ")
    if history is None or not history.versions or status in NOT_ENDED:
        return words
    completed = status is Status.COMPLETED
    result = describe_result(history, completed=completed)
    return result if completed else f"{result}: {words}"


def figures(timeline: Timeline, history: ReviewHistory | None) -> Iterator[tuple[str, str]]:
    """Yields what a run did in numbers, each with its label."""
    spend = timeline.spend
    if history is not None:
        counts = open_counts(history.open_findings())
        listed = ", ".join(f"{number} {name.lower()}" for name, number in counts.items())
        yield _figure(len(history.rounds), "round")
        yield str(sum(counts.values())), f"open ({listed})" if listed else "open findings"
        fixed = sum(each.status is FindingStatus.FIXED for each in history.findings)
        yield str(fixed), f"fixed of {count(len(history.findings), 'finding')}"
    yield _figure(spend.calls, "call")
    yield partial(money(spend.known_usd), spend.known_usd, spend.unknown_usd), "cost"
    cached = f", {spend.known_cached:,} cached" if spend.known_cached else ""
    yield _known(spend.known_tokens, spend.unknown_tokens), f"tokens{cached}"
    yield duration(spend.seconds), "at work"


def _figure(number: int, noun: str) -> tuple[str, str]:
    """Returns a number and its noun apart, as tiles show them."""
    amount, _, words = count(number, noun).partition(" ")
    return amount, words


def written_files(history: ReviewHistory | None) -> Iterator[Markup]:
    """Yields which files of the project the run has replaced, or why it has not."""
    if history is not None and (written := written_note(history.written)):
        yield tag("p", sentence(f"Files of the project: {written}"))


def who_read(timeline: Timeline, history: ReviewHistory | None) -> Iterator[Markup]:
    """Yields who has read what, and what a review that is not running has not read, and why."""
    if history is None or timeline.state.status in (Status.RUNNING, Status.QUEUED):
        return
    coverage = history.coverage
    parts = {
        "Not read": [(each.name, each.why) for each in coverage.missed],
        "Constraints": [(each.constraint, each.words) for each in history.read_by],
        "Left out by rule": [(each.name, each.why) for each in coverage.left_out],
    }
    for title, entries in parts.items():
        if entries:
            summary = tag("summary", title, tag("span", f" · {len(entries)}", class_="soft"))
            rows = [tag("li", tag("code", name), f": {words}") for name, words in entries]
            yield tag("details", summary, tag("ul", rows), open=title == "Not read")


def decisions(timeline: Timeline, history: ReviewHistory | None) -> Markup:
    """Returns what judges and humans decided, oldest first."""
    by_id = {each.id: each for each in history.findings} if history is not None else {}
    rows: list[tuple[float, Content, str, Content]] = []
    for each in history.rounds if history is not None else ():
        rows += [
            (j.at, f"round {j.round}, {j.step}", j.by, _judgment(j, by_id)) for j in each.judgments
        ]
    for decision in timeline.decisions:
        words = describe_answer({**asdict(decision), "by": ""})
        rows.append(
            (
                decision.at,
                f"{decision.step} ({RequestKind(decision.kind).word})",
                decision.by or "a human",
                words,
            )
        )
    rows.sort(key=lambda row: row[0])
    cells = [(moment(at), *others) for at, *others in rows]
    found = table(("When", "Where", "Who", "Decision"), cells) if rows else tag("p", "None.")
    return section("decisions", "Decisions", scrollable("Decisions", found))


def _judgment(judgment: Judgment, findings: Mapping[str, Finding]) -> Iterator[Content]:
    stated = VERDICT_WORDS.get(judgment.stated, "")
    overruled = f" (the judge said {stated}; the rules overruled it)" if stated else ""
    left = f", {len(judgment.to_fix)} {judgment.left}" if judgment.to_fix else ""
    yield tag("b", judgment.verdict_words), f"{overruled}{left}"
    for name, why in judgment.dismissed.items():
        link = finding_link(findings[name]) if name in findings else name
        yield tag("div", "dismissed ", link, f": {why or 'no reason given'}", class_="small")
    yield from (tag("div", note, class_="small soft") for note in judgment.notes)


def cost(timeline: Timeline) -> Markup:
    """Returns what each agent and model cost."""
    totals: dict[tuple[str, str], LedgerEntry] = {}
    for entry in sorted(timeline.state.ledger.values()):
        key = (entry.agent, entry.model)
        totals[key] = add_entries(totals[key], entry) if key in totals else entry
    rows = [(e.agent, e.model or "-", *amounts(e)) for e in totals.values()]
    headings = ("Agent", "Model", *AMOUNTS)
    found = table(headings, rows, numbers=5) if rows else tag("p", "No agent was asked.")
    return section("cost", "Cost by agent", scrollable("Cost by agent", found))


AMOUNTS = ("Calls", "Tokens in", "of these cached", "Tokens out", "Cost")
"""The headings of what `amounts` returns."""


def amounts(entry: LedgerEntry | LedgerTotal) -> tuple[str, ...]:
    """Returns the calls, tokens and cost of an entry; what no call reported is unknown."""
    return (
        f"{entry.calls:,}",
        _known(entry.tokens_in, entry.unknown_tokens),
        _known(entry.tokens_cached, entry.unknown_cached),
        _known(entry.tokens_out, entry.unknown_tokens),
        partial(money(entry.usd), entry.usd, entry.unknown_usd),
    )


def add_entries(one: LedgerEntry, other: LedgerEntry) -> LedgerEntry:
    """Returns two entries as one, with the names of the first."""
    names = LedgerEntry._fields[3:]
    return one._replace(**{name: getattr(one, name) + getattr(other, name) for name in names})


def _known(amount: int, unknown_calls: int) -> str:
    return partial(f"{amount:,}", amount, unknown_calls)


def steps(timeline: Timeline) -> Markup:
    """Returns every visit of a step, folded."""
    rows = [
        (
            visit.step,
            str(visit.iteration),
            visit.result or timeline.state.status.value,
            duration(visit.seconds),
            ", ".join(f"{number} {kind}" for kind, number in visit.effects.items()),
        )
        for visit in timeline.visits
    ]
    found = table(("Step", "Round", "Outcome", "Time", "Effects"), rows)
    summary = tag("summary", count(len(rows), "step"))
    inside = tag("details", summary, scrollable("Steps", found), class_="card")
    return section("steps", "Steps", inside)


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
