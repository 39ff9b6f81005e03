"""Reads what a check found into the form of a critique.

Three ways of saying it are understood: JSON, lines `file:line: message`, and nothing but
an exit code. What cannot be read is never a pass, and a verdict is held against the
findings: a pass with findings is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.severity import Severity
from signoff.errors import AgentBadOutput

WORDS = {
    "fatal": Severity.CRITICAL,
    "error": Severity.HIGH,
    "warning": Severity.MEDIUM,
    "note": Severity.LOW,
    "info": Severity.LOW,
}
"""How compilers and linters call what they found."""

MAX_FINDINGS = 500
"""No judge reads more; how many there were is said in the summary."""
MOST_EVIDENCE = 2_000

_LINE = re.compile(
    r"(?P<file>(?:[A-Za-z]:[\\/])?[^:\n]+):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?:\s*"
    r"(?:(?P<word>fatal|error|warning|note|info)\b\s*:?\s*)?(?P<message>\S.*)"
)
_OTHER_NAMES = {"message": "finding", "text": "finding", "rule": "rule_id", "fix": "suggested_fix"}


@dataclass(frozen=True)
class Source:
    """What was checked, and as what."""

    constraint: str
    """Findings are numbered after it: `spelling-001`."""
    severity: str
    """Of findings that state none."""
    artifact: str
    itself: frozenset[str] = frozenset()
    """Names the check has for the artifact: of a temporary file, or of its standard input."""

    def line(self, number: int) -> str:
        """Returns one line of the artifact, or nothing."""
        lines = self.artifact.splitlines()
        return lines[number - 1][:MOST_EVIDENCE] if 0 < number <= len(lines) else ""


def build_critique(found: Iterable[Any], source: Source, summary: str = "") -> dict[str, Any]:
    """Returns a critique of findings given as texts or as mappings."""
    issues = [_issue(each, number, source) for number, each in enumerate(found, 1)]
    more = f"{len(issues)} findings, the first {MAX_FINDINGS} of them listed"
    said = more if len(issues) > MAX_FINDINGS else summary or _counted(len(issues))
    return {
        "overall": "FAIL" if issues else "PASS",
        "issues": issues[:MAX_FINDINGS],
        "approved_sections": [],
        "summary": said,
    }


def from_output(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique in whichever way a program states it."""
    if output.lstrip()[:1] in ("{", "["):
        return from_json(output, code, source)
    if any(_LINE.fullmatch(line.strip()) for line in output.splitlines()):
        return from_lines(output, code, source)
    return from_code(output, code, source)


def from_json(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique a program states as JSON: a list of findings, or a whole critique."""
    try:
        document = json.loads(output)
    except ValueError as error:
        raise AgentBadOutput(f"the check printed no JSON, or not all of it: {error}") from error
    whole = document if isinstance(document, dict) else {"issues": document}
    issues = whole.get("issues", whole.get("findings"))
    if not isinstance(issues, list):
        raise AgentBadOutput('the check printed JSON without a list of "issues"')
    stated = str(whole.get("overall", "")).upper()
    if stated not in ("", "PASS", "FAIL"):
        raise AgentBadOutput(f"the check states {stated!r}; its verdict is PASS or FAIL")
    summary = str(whole.get("summary") or "")
    if not issues and (stated == "FAIL" or code != 0):
        issues = [summary or f"the check failed with exit code {code} and names no finding"]
    return build_critique(issues, source, summary)


def from_lines(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique a program states line by line; other lines are not counted."""
    found = [line.strip() for line in output.splitlines() if _LINE.fullmatch(line.strip())]
    return build_critique(found, source) if found else from_code(output, code, source)


def from_code(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique an exit code means; what was printed is the evidence."""
    if code == 0:
        return build_critique([], source)
    said = output.strip()
    finding = {
        "finding": said.splitlines()[-1] if said else f"the check failed with exit code {code}",
        "evidence": said[-MOST_EVIDENCE:],
    }
    return build_critique([finding], source)


def _issue(found: Any, number: int, source: Source) -> dict[str, Any]:
    said = _from_line(found, source) if isinstance(found, str) else _from_mapping(found, number)
    severity = str(said.get("severity") or source.severity)
    severity = WORDS.get(severity.lower(), severity)
    confidence = said.get("confidence")
    exact = said.get("edit")
    return {
        "id": str(said.get("id") or f"{source.constraint}-{number:03d}"),
        "rule_id": str(said.get("rule_id") or source.constraint),
        "severity": Severity.read(severity).value,
        "location": str(said.get("location") or ""),
        "finding": str(said["finding"]),
        "evidence": str(said.get("evidence") or ""),
        "suggested_fix": said.get("suggested_fix"),
        "confidence": confidence if isinstance(confidence, int | float) else 1.0,
        # The change that would mend it, where the check knows it exactly.
        **({"edit": dict(exact)} if isinstance(exact, Mapping) else {}),
    }


def _from_line(text: str, source: Source) -> dict[str, Any]:
    match = _LINE.fullmatch(text.strip())
    if match is None:
        return {"finding": text}
    number = int(match["line"])
    own = match["file"] in source.itself
    return {
        "finding": match["message"],
        "severity": match["word"],
        "location": f"line {number}" if own else f"{match['file']}:{number}",
        "evidence": source.line(number) if own else "",
    }


def _from_mapping(found: Any, number: int) -> dict[str, Any]:
    if not isinstance(found, Mapping):
        raise AgentBadOutput(
            f"finding {number} is {type(found).__name__}; a finding is a text or a mapping"
        )
    said = {_OTHER_NAMES.get(str(key), str(key)): value for key, value in found.items()}
    if not str(said.get("finding") or "").strip():
        raise AgentBadOutput(f'finding {number} says nothing; it needs a "finding"')
    if not said.get("location") and said.get("line"):
        file = f"{said['file']}:" if said.get("file") else "line "
        said["location"] = f"{file}{said['line']}"
    return said


def _counted(number: int) -> str:
    return "1 finding" if number == 1 else f"{number or 'no'} findings"
