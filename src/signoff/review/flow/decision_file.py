"""The project's lasting decisions: `.signoff/decisions.yaml`, which is committed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from signoff.core.errors import InvalidWorkflow, Problem, UsageError, WriteFailed
from signoff.documents.files import display_path, read_text
from signoff.documents.regular_files import file_lock, make_private_folders
from signoff.documents.yaml_text import as_mapping, newer_version, read_yaml
from signoff.review.flow.yaml_pages import as_yaml
from signoff.review.pure.lasting_decision import BASELINE, LastingDecision

NAME = "decisions.yaml"
VERSION = 1
_EMPTY_LIST = re.compile(r"^decisions: *\[ *\]\Z", re.MULTILINE)
MOST_BYTES = 100_000_000
"""A baseline of ten thousand findings takes seven million."""
_ITEM = "  - "
_HEAD = """# Findings that are not fixed, and why. Reviews add to it.
# A decision holds while the passage it quotes is unchanged. Commit this file.
version: 1
decisions:
"""


def read_decisions(home: Path | None) -> list[LastingDecision]:
    """Returns the decisions of a project; raises `InvalidWorkflow` with every problem."""
    path = home / NAME if home is not None else None
    return _read(path) if path is not None and path.exists() else []


def _read(path: Path) -> list[LastingDecision]:
    problems: list[Problem] = []
    text = read_text(path, problems, most=MOST_BYTES) or ""
    rest, compact = _without_compact(text)
    document = read_yaml(rest, display_path(path), problems) if text else None
    if document is not None:
        document = as_mapping(document, problems, "version and decisions")
    if document is not None and (newer := newer_version(document, VERSION)):
        problems.append(newer)
    listed = (document.content.get("decisions") or []) if document is not None else []
    if not isinstance(listed, list):
        problems.append(Problem(path.name, "decisions is not a list"))
        listed = []
    entries = _in_order(listed, compact)
    decisions = []
    for number, entry in enumerate(entries):
        try:
            decisions.append(_decision(entry))
        except (ValueError, TypeError) as error:
            what = str(error).partition("\n")[0]
            problems.append(Problem(path.name, f"decisions[{number}] is not valid: {what}"))
    if problems:
        raise InvalidWorkflow(NAME, problems)
    return decisions


def _without_compact(text: str) -> tuple[str, dict[int, Any]]:
    """Returns a file without its entries of one line, and these by their position in the list.

    A baseline has thousands of entries. YAML would take a minute for them, and JSON, which is
    YAML as well, takes a moment. An empty line stays for each, so that problems name their lines.
    """
    lines, compact, position = text.split("\n"), dict[int, Any](), -1
    for number, line in enumerate(lines):
        position += line.startswith(_ITEM)
        if line.startswith(_ITEM + "{"):
            with suppress(ValueError, RecursionError):
                compact[position] = json.loads(line.removeprefix(_ITEM))
                lines[number] = ""
    return "\n".join(lines), compact


def _in_order(listed: Sequence[Any], compact: Mapping[int, Any]) -> list[Any]:
    """Returns all entries in the order of the file."""
    rest = iter(listed)
    before = range(max(compact, default=-1) + 1)
    return [
        *(each for n in before for each in ([compact[n]] if n in compact else islice(rest, 1))),
        *rest,
    ]


def add_decisions(
    home: Path, decisions: Sequence[LastingDecision], *, replace: bool = False
) -> Path:
    """Adds decisions to the file, without those it has already; returns it.

    A decision about a finding that it knows is added if it holds longer, for
    another text, or for a worse report. With `replace`, it takes the place of the earlier one.
    """
    path, ignored = home / NAME, home / "runs"
    try:
        # The lock's file stays, and must not appear in `git status`.
        make_private_folders(ignored)
        # Two processes may dismiss findings at the same time, and each rewrites the whole file.
        with file_lock(ignored / NAME):
            known = read_decisions(home)
            subjects = set(map(_subject, decisions)) if replace else set()
            outdated = [_subject(each) in subjects for each in known]
            known = [each for each in known if _subject(each) not in subjects]
            scopes = set(map(_scope, known))
            new = [each for each in decisions if _scope(each) not in scopes]
            text = _without(path.read_text("utf-8"), outdated) if path.exists() else _HEAD
            if new:
                text = _EMPTY_LIST.sub("decisions:", text.rstrip("\n"))
                _write(path, f"{text}\n{''.join(map(_entry, new))}", [*known, *new])
    except OSError as error:
        raise WriteFailed(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _entry(decision: LastingDecision) -> str:
    """Returns the text of an entry: what nobody wrote a reason for takes one line."""
    values = decision.to_json()
    if decision.why != BASELINE:
        return as_yaml({"decisions": [values]}).decode().partition("\n")[2]
    text = json.dumps(values, ensure_ascii=False)
    return f"{_ITEM}{text if text.isprintable() else json.dumps(values)}\n"


def _without(text: str, outdated: Sequence[bool]) -> str:
    """Returns the file without some of its decisions; the user's comments stay."""
    lines, number = list[str](), -1
    for line in text.splitlines(keepends=True):
        number += line.startswith(_ITEM)
        drop = 0 <= number < len(outdated) and outdated[number]
        if not drop or line.startswith(("#", "  #")):
            lines.append(line)
    return "".join(lines)


def _subject(decision: LastingDecision) -> tuple[str, ...]:
    """Returns what a decision is about."""
    return decision.finding, decision.path, decision.version, *_rule_scope(decision)


def _rule_scope(decision: LastingDecision) -> tuple[str, ...]:
    """Returns the rule and the files of a decision about all findings like one."""
    if not decision.all_like:
        return ()
    return "all like it", decision.constraint, decision.rule, decision.files


def _scope(decision: LastingDecision) -> tuple[str, ...]:
    """Returns what a decision is about, and how long it holds."""
    severity = decision.severity.value
    return *_subject(decision), severity, decision.until


def _decision(entry: Any) -> LastingDecision:
    # YAML reads a day as a date.
    values = {k: str(v) if isinstance(v, date) else v for k, v in dict(entry).items()}
    decision = LastingDecision.from_json(values)
    if decision.until:
        date.fromisoformat(decision.until)
    return decision


def _write(path: Path, text: str, decisions: Sequence[LastingDecision]) -> None:
    if len(text) > MOST_BYTES:
        raise UsageError(f"too many decisions: {path} would have more than {MOST_BYTES:,} bytes")
    # The draft is read back before it replaces the file. A decision that would be lost by the
    # user's own layout is an error now, and not a finding that comes back in a month.
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, "utf-8")
    try:
        # The file is the user's, with comments, and may be laid out in another way.
        if [_scope(each) for each in _read(draft)] == [_scope(each) for each in decisions]:
            draft.replace(path)
            return
    except InvalidWorkflow:
        pass
    finally:
        draft.unlink(missing_ok=True)
    raise UsageError(
        f"cannot add decisions to {path}: its list is not at the end, or not indented by two spaces"
    )
