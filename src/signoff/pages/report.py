"""The report of a run: one HTML file that needs nothing else, neither requests nor scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources

from signoff.core.outcome import Status
from signoff.core.spend import LedgerEntry
from signoff.exports.run_record import Export, ExportOptions, RunRecord
from signoff.pages.chart import rounds_chart
from signoff.pages.diff import finding_link, hunk_html
from signoff.pages.findings import finding_html, marked_text
from signoff.pages.html import Content, Markup, join, tag
from signoff.review.finding import Finding, FindingStatus
from signoff.review.history import Judgment, ReviewHistory, open_counts
from signoff.runtime.amounts import count, duration, money
from signoff.runtime.narration import describe_answer, describe_stop
from signoff.runtime.timeline import Timeline

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Lets the page load nothing, whatever the texts in it contain."""


def report(record: RunRecord, _options: ExportOptions) -> Iterator[str]:
    """Yields the report of a run."""
    timeline, history = record.folded()
    if timeline.state.status is not Status.RUNNING:
        timeline.close_bill()
    title = f"{record.name}: {timeline.state.workflow or record.workflow}"
    yield "<!DOCTYPE html>\n<html lang=en>\n"
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} - signoff"),
        tag("style", Markup(_style())),
    ]
    yield tag("head", head)
    yield "\n<body><main>\n"
    yield from _summary(record, timeline, history)
    if history is not None:
        yield from _review(history)
    yield from _decisions(timeline, history)
    yield from _cost(timeline)
    yield from _steps(timeline)
    yield tag("footer", f"Made by signoff from the journal of run {record.name}. Times are UTC.")
    yield "\n</main></body>\n</html>\n"


EXPORT = Export("html", "A report to read: one self-contained page.", report)


def _style() -> str:
    return resources.files("signoff.pages").joinpath("style.css").read_text("utf-8")


def _section(name: str, title: Content, *parts: Content) -> Markup:
    return tag("section", tag("h2", title), "\n", parts, id=name)


def _summary(
    record: RunRecord, timeline: Timeline, history: ReviewHistory | None
) -> Iterator[Markup]:
    state = timeline.state
    words = state.status.value.replace("_", " ")
    if history is not None and state.status is Status.COMPLETED and history.approved:
        words = "approved"
    elif history is not None and history.versions and state.status is not Status.RUNNING:
        words = f"not approved: {words}"
    how, why = describe_stop(words, state.stop_reason)
    style = {Status.COMPLETED: "good", Status.WAITING: "wait", Status.PARKED: "wait"}
    yield tag("h1", record.name)
    yield tag(
        "p",
        f"{state.workflow or record.workflow} · started {_moment(state.started_at)}",
        class_="soft",
    )
    yield tag(
        "p", tag("span", how, class_=f"verdict {style.get(state.status, 'bad')}"), class_="status"
    )
    if why:
        yield tag("p", why)
    if history is not None and history.goal:
        yield tag("div", tag("b", "Goal. "), history.goal, class_="card")
    yield tag("div", [_tile(*each) for each in _figures(timeline, history)], class_="tiles")
    sections = ["rounds", "findings", "text", "changes"] if history and history.versions else []
    links = [
        tag("a", each.capitalize(), href=f"#{each}")
        for each in (*sections, "decisions", "cost", "steps")
    ]
    yield tag("nav", links)


def _tile(value: str, label: str) -> Markup:
    return tag("div", tag("b", value), tag("span", label), class_="tile")


def _figures(timeline: Timeline, history: ReviewHistory | None) -> Iterator[tuple[str, str]]:
    spend = timeline.spend
    if history is not None:
        counts = open_counts(history.open_findings())
        listed = ", ".join(f"{number} {name.lower()}" for name, number in counts.items())
        yield str(len(history.rounds)), "rounds"
        yield str(sum(counts.values())), f"open ({listed})" if listed else "open findings"
        fixed = sum(each.status is FindingStatus.FIXED for each in history.findings)
        yield str(fixed), f"fixed of {count(len(history.findings), 'finding')}"
    yield f"{spend.calls:,}", "calls"
    more = "+" if spend.unknown_usd else ""
    unknown = spend.unknown_usd and not spend.known_usd
    yield ("unknown" if unknown else f"{money(spend.known_usd)}{more}"), "cost"
    cached = f", {spend.known_cached:,} cached" if spend.known_cached else ""
    yield f"{spend.known_tokens:,}{'+' if spend.unknown_tokens else ''}", f"tokens{cached}"
    yield duration(spend.seconds), "at work"


def _review(history: ReviewHistory) -> Iterator[Markup]:
    if not history.versions:
        return
    chart = rounds_chart(history.rounds)
    yield _section("rounds", "Rounds", tag("div", chart or "No round was reviewed.", class_="card"))
    yield _section("findings", "Findings", _finding_groups(history))
    result = history.result
    if result is not None:
        still_open = [each for each in history.findings if each.status is FindingStatus.OPEN]
        what = "approved" if history.approved else "best reviewed" if history.best else "latest"
        title = f"The text, version {result.number} ({what})"
        yield _section("text", title, marked_text(history, result, still_open))
    yield _section("changes", "Changes by round", _changes(history))


_GROUPS = {
    FindingStatus.OPEN: "Open",
    FindingStatus.DISMISSED: "Dismissed",
    FindingStatus.FIXED: "Fixed",
    FindingStatus.IGNORED: "Ignored",
}


def _finding_groups(history: ReviewHistory) -> Iterator[Markup]:
    if not history.findings:
        yield tag("p", "No critic reported anything.")
    for status, title in _GROUPS.items():
        found = [each for each in history.findings if each.status is status]
        if found:
            found.sort(key=lambda each: (each.severity.rank, each.first))
            summary = tag("summary", title, tag("span", f" · {len(found)}", class_="soft"))
            is_open = status in (FindingStatus.OPEN, FindingStatus.DISMISSED) or len(found) <= 20
            yield tag("details", summary, [finding_html(history, f) for f in found], open=is_open)


def _changes(history: ReviewHistory) -> Iterator[Markup]:
    by_id = {each.id: each for each in history.findings}
    pairs = [pair for each in history.rounds if (pair := history.fix_of(each.number))]
    if not pairs:
        yield tag("p", "Nothing was changed.")
    for before, after in pairs:
        changes = history.changes(before, after)
        hunks = [hunk for found in changes.values() for hunk in found]
        added, removed = sum(h.added for h in hunks), sum(h.removed for h in hunks)
        how = f"by {after.agent}" if after.agent else "by exact edits, without an agent"
        summary = tag(
            "summary", f"Round {after.round}",
            tag("span", f" · {how} · +{added} -{removed}", class_="soft"),
        )  # fmt: skip
        files: list[Content] = []
        for path, found in changes.items():
            files.append(
                tag("h3", history.name_of(path), class_="mono") if len(changes) > 1 else None
            )
            files += [hunk_html(hunk, by_id) for hunk in found]
        yield tag("details", summary, files, open=len(pairs) <= 6, class_="card")


def _decisions(timeline: Timeline, history: ReviewHistory | None) -> Iterator[Markup]:
    by_id = {each.id: each for each in history.findings} if history is not None else {}
    rows: list[tuple[float, Content, str, Content]] = []
    for each in history.rounds if history is not None else ():
        rows += [
            (j.at, f"round {j.round}, {j.step}", j.by, _judgment(j, by_id)) for j in each.judgments
        ]
    for decision in timeline.decisions:
        words = describe_answer({"value": decision.value, "text": decision.text})
        rows.append(
            (decision.at, f"{decision.step} ({decision.kind})", decision.by or "a human", words)
        )
    rows.sort(key=lambda row: row[0])
    cells = [(_moment(at), *others) for at, *others in rows]
    table = _table(("When", "Where", "Who", "Decision"), cells) if rows else tag("p", "None.")
    yield _section("decisions", "Decisions", tag("div", table, class_="card scroll"))


def _judgment(judgment: Judgment, findings: Mapping[str, Finding]) -> Iterator[Content]:
    overruled = f" (stated {judgment.stated}; the rules overruled it)" if judgment.stated else ""
    pursued = f", {len(judgment.pursued)} to fix" if judgment.pursued else ""
    yield tag("b", judgment.verdict), f"{overruled}{pursued}"
    for name, why in judgment.dismissed.items():
        link = finding_link(findings[name]) if name in findings else name
        yield tag("div", "dismissed ", link, f": {why or 'no reason given'}", class_="small")
    yield from (tag("div", note, class_="small soft") for note in judgment.notes)


def _cost(timeline: Timeline) -> Iterator[Markup]:
    entries = timeline.state.ledger.values()
    totals: dict[tuple[str, str], LedgerEntry] = {}
    for entry in sorted(entries):
        key = (entry.agent, entry.model)
        totals[key] = _sum(totals[key], entry) if key in totals else entry
    rows = [
        (
            entry.agent,
            entry.model or "-",
            f"{entry.calls:,}",
            _known(entry.tokens_in, entry.unknown_tokens),
            _known(entry.tokens_cached, entry.unknown_cached),
            _known(entry.tokens_out, entry.unknown_tokens),
            money(None if entry.unknown_usd else entry.usd),
        )
        for entry in totals.values()
    ]
    headings = ("Agent", "Model", "Calls", "Tokens in", "of these cached", "Tokens out", "Cost")
    table = _table(headings, rows, numbers=5) if rows else tag("p", "No agent was asked.")
    yield _section("cost", "Cost by agent", tag("div", table, class_="card scroll"))


def _sum(one: LedgerEntry, other: LedgerEntry) -> LedgerEntry:
    names = LedgerEntry._fields[3:]
    amounts = {name: getattr(one, name) + getattr(other, name) for name in names}
    return one._replace(**amounts)


def _known(amount: int, unknown_calls: int) -> str:
    return (
        "unknown" if unknown_calls and not amount else f"{amount:,}{'+' if unknown_calls else ''}"
    )


def _steps(timeline: Timeline) -> Iterator[Markup]:
    rows = [
        (
            visit.step,
            str(visit.iteration),
            visit.outcome.value if visit.outcome else timeline.state.status.value,
            duration(visit.seconds),
            ", ".join(f"{number} {kind}" for kind, number in visit.effects.items()),
        )
        for visit in timeline.visits
    ]
    table = _table(("Step", "Round", "Outcome", "Time", "Effects"), rows)
    summary = tag("summary", count(len(rows), "step"))
    yield _section(
        "steps", "Steps", tag("details", summary, tag("div", table, class_="scroll"), class_="card")
    )


def _table(headings: Sequence[str], rows: Sequence[Sequence[Content]], numbers: int = 0) -> Markup:
    """Returns a table whose last columns are numbers, as many as `numbers` says."""
    kinds = [None] * (len(headings) - numbers) + ["n"] * numbers
    head = [tag("th", text, class_=kind) for text, kind in zip(headings, kinds, strict=True)]
    body = [
        tag("tr", [tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)])
        for row in rows
    ]
    return tag("table", tag("thead", tag("tr", head)), tag("tbody", join(body)))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
