"""What every page about a run shows: its figures, decisions, cost and steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from signoff.core.outcome import NOT_ENDED, Status
from signoff.core.requests import RequestKind
from signoff.core.spend import LedgerEntry
from signoff.core.words import VERDICT_WORDS, FindingStatus
from signoff.pages.diff import finding_link
from signoff.pages.html import Content, Markup, tag
from signoff.pages.parts import moment, scrollable, section, sentence, table
from signoff.review.finding import Finding
from signoff.review.history import Judgment, ReviewHistory, describe_result, open_counts
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
