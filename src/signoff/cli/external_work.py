"""Tells a worker outside what is to be done, what must hold, and what came of what it did."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from signoff import plugins
from signoff.app.external_work import RunStatus, WorkItem
from signoff.cli import exits
from signoff.cli.driving import choose_view, events_file
from signoff.cli.interrupts import Interrupted, run_interruptibly
from signoff.cli.output import Output
from signoff.cli.summary import WORDS
from signoff.cli.text import one_line
from signoff.core.digest import SHORT
from signoff.core.outcome import Status
from signoff.documents.control_characters import json_text
from signoff.runtime.ports import Observer

_MENDED = frozenset({Status.FAILED, Status.INTERRUPTED})

SHOWN = 5
"""How many pieces of work are shown whole; a worker's room for reading is small."""

Work = Callable[[Sequence[Observer]], Coroutine[Any, Any, RunStatus]]


def follow(out: Output, work: Work, events: Path | None = None) -> RunStatus | None:
    """Drives a run as far as it goes without help; None when it was interrupted."""
    jsonl = events_file(events)
    # What is printed goes to a program that reads it: what happens meanwhile is left to `logs`.
    view = choose_view(Output(out.as_json, quiet=not out.verbose, verbose=out.verbose))
    try:
        with view:
            return run_interruptibly(work([view, *([jsonl] if jsonl else [])]), view)
    except Interrupted:
        return None
    finally:
        if jsonl is not None:
            jsonl.close()


def code_of(standing: RunStatus) -> int:
    """Returns 0 when there is work, or the run is completed; else why there is none."""
    if standing.verdict is not None and not standing.verdict.accepted:
        return exits.NOT_ACCEPTED
    if standing.work:
        return exits.OK
    code = exits.exit_code(standing.row.status)
    return exits.INTERRUPTED if code is None else code


def tell(standing: RunStatus, out: Output, number: int | None = None) -> None:
    """Prints where a run stands; of several pieces of work, only the one that was asked for."""
    pieces = [piece for piece in standing.work if number in (None, piece.number)]
    if out.as_json:
        out.json(to_json(standing, pieces))
        return
    verdict = standing.verdict
    if verdict is not None:
        number = verdict.number
        which = f" #{number}" if number is not None else ""
        out.line(
            f"accepted{which}" if verdict.accepted else f"not accepted{which}: {verdict.problem}"
        )
        out.line()
    if pieces:
        for piece in pieces[:SHOWN]:
            _tell_piece(piece, out)
        _tell_others(pieces[SHOWN:], out)
        return
    _tell_rest(standing, out)


def to_json(standing: RunStatus, pieces: Sequence[WorkItem]) -> dict[str, Any]:
    """Returns where a run stands as plain values."""
    row, verdict = standing.row, standing.verdict
    return {
        "run": row.name,
        "status": row.status.value,
        "step": row.step,
        "reason": row.reason,
        "accepted": verdict.accepted if verdict else None,
        "problem": (verdict.problem or None) if verdict else None,
        "work": [{**asdict(piece), "submit": _commands(piece)} for piece in pieces],
        "for_people": [
            {"number": item.id, "kind": item.kind, "step": item.step, "prompt": item.prompt}
            for item in standing.people
        ],
        "exit_code": code_of(standing),
    }


def _tell_piece(piece: WorkItem, out: Output) -> None:
    again = f", attempt {piece.attempt}" if piece.attempt > 1 else ""
    out.line(f"--- work #{piece.number} of run {piece.run}: {piece.step}{again} ---")
    out.line(piece.prompt)
    out.line()
    unsaid = [each for each in piece.must_hold if each not in piece.prompt]
    if unsaid:
        out.line("Conditions that the engine checks:")
        for each in unsaid:
            out.line(f"- {each}")
        out.line()
    if piece.schema:
        out.line("The result must match this JSON Schema:")
        out.line(json_text(piece.schema, indent=1))
        out.line()
    out.line("When it is done, or cannot be done:")
    for command in _commands(piece):
        out.line(f"  {command}")
    for option in plugins.options_of("submit") if piece.takes else ():
        if option.word in piece.takes:
            out.line(f"  Optional: {option.flag} {option.metavar}. {option.help}")
    out.line()


def _tell_others(pieces: Sequence[WorkItem], out: Output) -> None:
    if pieces:
        first, last, run = pieces[0].number, pieces[-1].number, shlex.quote(pieces[0].run)
        which = f"#{first}" if len(pieces) == 1 else f"#{first} to #{last}"
        out.line(f"and {len(pieces)} more ({which}): signoff next {run} --item {first}")


def _commands(piece: WorkItem) -> list[str]:
    place = f"signoff submit {shlex.quote(piece.run)} --item {piece.number}"
    bound = f"{place} --digest {piece.digest[:SHORT]}"
    return [f"{bound} --result JSON", f"{bound} --failure WHY"]


def _tell_rest(standing: RunStatus, out: Output) -> None:
    row = standing.row
    said = WORDS.get(row.status, row.status.value)
    why = f": {one_line(row.reason)}" if row.reason and row.status is not Status.WAITING else ""
    out.line(f"no open work; run {row.name} is {said}{why}")
    if row.status in _MENDED:
        out.line(f"  fix that, then run: signoff next {shlex.quote(row.name)} (no work is lost)")
    for item in standing.people:
        out.line(f"  a human decides #{item.id} ({item.step}): {one_line(item.prompt, 200)}")
