"""Turns the output of a check into a critique.

Three formats are understood: JSON, lines of `file:line: message`, and a bare exit code.
Output that cannot be parsed is never a pass, and a verdict is compared with the findings: a
pass with findings counts as a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from signoff.core.severity import Severity
from signoff.errors import AgentBadOutput

SEVERITY_WORDS = {
    "fatal": Severity.CRITICAL,
    "error": Severity.HIGH,
    "warning": Severity.MEDIUM,
    "note": Severity.LOW,
    "info": Severity.LOW,
}
"""The severities of compilers and linters."""

MAX_EVIDENCE = 2_000

_LINE = re.compile(
    r"(?P<file>(?:[A-Za-z]:[\\/])?[^:\n]+):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?:\s*"
    r"(?:(?P<word>fatal|error|warning|note|info)\b\s*:?\s*)?(?P<message>\S.*)"
)
_RULE = re.compile(r"(?P<rule>[A-Z]{1,6}\d{2,6}):?\s+(?:\[\*\]\s+)?(?P<message>\S.*)")
"""How linters name the rule: `F841 message`, or `F401 [*] message` if they can fix it."""
_FRAME = re.compile(r'\s+File "(?P<file>[^"]*)", line \d')
_EXCEPTION = re.compile(r"(?P<name>[\w.]+)(?::|$)")
_NOT_STARTED = re.compile(
    # The path of an interpreter may have spaces.
    r"(?:.*/)?python[\d.]*: (?:can't open file|No module named)|Node\.js v\d"
)
"""The last line of an interpreter that did not find the program, or of Node.js after a crash."""
_MOST_FRAME_LINES = 400
_PARSED = frozenset({"<unknown>", "<string>"})
"""What Python calls a text that it parses."""
_OTHER_NAMES = {
    "message": "finding",
    "text": "finding",
    "rule": "rule_id",
    "code": "rule_id",
    "fix": "suggested_fix",
    "filename": "file",
}


@dataclass(frozen=True)
class Source:
    """The artifact that was checked, and the constraint it was checked against."""

    constraint: str
    """Findings are numbered after it: `spelling-001`."""
    severity: str
    """The severity of findings without one."""
    artifact: str
    artifact_names: frozenset[str] = frozenset()
    """What the check calls the artifact: the name of a temporary file or of standard input."""

    def line(self, number: int) -> str:
        """Returns one line of the artifact, or ""."""
        within = 0 < number <= len(self._lines)
        return self._lines[number - 1][:MAX_EVIDENCE] if within else ""

    @cached_property
    def _lines(self) -> list[str]:
        return self.artifact.splitlines()


def build_critique(findings: Iterable[Any], source: Source, summary: str = "") -> dict[str, Any]:
    """Returns the critique for findings, which are texts or mappings."""
    issues = [_issue(finding, number, source) for number, finding in enumerate(findings, 1)]
    count = len(issues)
    return {
        "overall": "FAIL" if issues else "PASS",
        "issues": issues,
        "approved_sections": [],
        "summary": summary or ("1 finding" if count == 1 else f"{count or 'no'} findings"),
    }


def crash_of(stdout: str, stderr: str, source: Source) -> str:
    """Returns the line that says why a failed check crashed; "" if it has reported something.

    A crash says nothing about the artifact. It is one if the output ends in the traceback of an
    uncaught exception and has no finding. An `AssertionError` is a way to report, and so is an
    error in the artifact itself, of a check that parses or executes it.
    """
    if _has_findings(stdout):
        return ""
    lines = (stderr if stderr.strip() else stdout).rstrip().splitlines()[-_MOST_FRAME_LINES:]
    if not lines:
        return ""
    *before, last = lines
    if _NOT_STARTED.match(last):
        return last
    indented = list(takewhile(lambda line: line[:1] in (" ", "\t"), reversed(before)))
    frame = next(filter(None, map(_FRAME.match, indented)), None)
    exception = _EXCEPTION.match(last)
    if frame is None or exception is None or exception["name"] == AssertionError.__name__:
        return ""
    parsed = "SyntaxError" in last or "IndentationError" in last
    in_artifact = frame["file"] in source.artifact_names or (parsed and frame["file"] in _PARSED)
    return "" if in_artifact else last


def _has_findings(output: str) -> bool:
    if any(_LINE.fullmatch(line.strip()) for line in output.splitlines()):
        return True
    # JSON with findings is not the output of a crash; an empty list may be all that was printed.
    return output.lstrip()[:1] in ("{", "[") and output.strip() != "[]"


def _from_output(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique from a program's output, in any of the formats."""
    if output.lstrip()[:1] in ("{", "["):
        return _from_json(output, code, source)
    if any(_LINE.fullmatch(line.strip()) for line in output.splitlines()):
        return _from_lines(output, code, source)
    return _from_code(output, code, source)


def _from_json(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique from JSON: a list of findings, or a whole critique."""
    try:
        document = json.loads(output)
    except ValueError as error:
        raise AgentBadOutput(f"the check printed invalid or incomplete JSON: {error}") from error
    whole = document if isinstance(document, dict) else {"issues": document}
    issues = whole.get("issues", whole.get("findings"))
    if not isinstance(issues, list):
        raise AgentBadOutput('the check printed JSON without a list of "issues"')
    verdict = str(whole.get("overall", "")).upper()
    if verdict not in ("", "PASS", "FAIL"):
        raise AgentBadOutput(f"the check printed the verdict {verdict!r}; it must be PASS or FAIL")
    summary = str(whole.get("summary") or "")
    if not issues and (verdict == "FAIL" or code != 0):
        issues = [summary or f"the check failed with exit code {code} and reports no finding"]
    return build_critique(issues, source, summary)


def _from_lines(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique from lines of `file:line: message`; other lines are ignored."""
    lines = [line.strip() for line in output.splitlines() if _LINE.fullmatch(line.strip())]
    return build_critique(lines, source) if lines else _from_code(output, code, source)


def _from_code(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique for an exit code, with the output as evidence."""
    if code == 0:
        return build_critique([], source)
    text = output.strip()
    finding = {
        "finding": text.splitlines()[-1] if text else f"the check failed with exit code {code}",
        "evidence": text[-MAX_EVIDENCE:],
    }
    return build_critique([finding], source)


READERS = {"auto": _from_output, "json": _from_json, "lines": _from_lines, "exit": _from_code}
"""The formats of findings, by their names in the settings."""


def _issue(finding: Any, number: int, source: Source) -> dict[str, Any]:
    if isinstance(finding, str):
        fields = _from_line(finding, source)
    else:
        fields = _from_mapping(finding, number)
    severity = str(fields.get("severity") or source.severity)
    severity = SEVERITY_WORDS.get(severity.lower(), severity)
    confidence = fields.get("confidence")
    edit = fields.get("edit")
    return {
        "id": str(fields.get("id") or f"{source.constraint}-{number:03d}"),
        "rule_id": str(fields.get("rule_id") or source.constraint),
        "severity": Severity.read(severity).value,
        "location": str(fields.get("location") or ""),
        **_named_line(fields, source),
        "finding": str(fields["finding"]),
        "evidence": str(fields.get("evidence") or _quoted_line(fields, source)),
        "suggested_fix": fields.get("suggested_fix"),
        "confidence": confidence if isinstance(confidence, int | float) else 1.0,
        # The edit that fixes it, where the check knows it exactly.
        **({"edit": dict(edit)} if isinstance(edit, Mapping) else {}),
    }


def _from_line(text: str, source: Source) -> dict[str, Any]:
    match = _LINE.fullmatch(text.strip())
    if match is None:
        return {"finding": text}
    number = int(match["line"])
    in_artifact = match["file"] in source.artifact_names
    named = _RULE.fullmatch(match["message"])
    return {
        "finding": named["message"] if named else match["message"],
        "rule_id": named["rule"] if named else None,
        "severity": match["word"],
        "location": f"line {number}" if in_artifact else f"{match['file']}:{number}",
        "evidence": source.line(number) if in_artifact else "",
    }


def _from_mapping(finding: Any, number: int) -> dict[str, Any]:
    if not isinstance(finding, Mapping):
        raise AgentBadOutput(
            f"finding {number} is {type(finding).__name__}; it must be a text or a mapping"
        )
    fields = {_OTHER_NAMES.get(str(key), str(key)): value for key, value in finding.items()}
    if not str(fields.get("finding") or "").strip():
        raise AgentBadOutput(f'finding {number} is empty; it needs a "finding"')
    place, fix = fields.get("location"), fields.get("suggested_fix")
    if isinstance(place, Mapping):
        fields |= {"location": None, "line": place.get("row", place.get("line"))}
    if isinstance(fix, Mapping):
        fields["suggested_fix"] = str(fix.get("message") or "") or None
    if not fields.get("location") and fields.get("line"):
        file = f"{fields['file']}:" if fields.get("file") else "line "
        fields["location"] = f"{file}{fields['line']}"
    return fields


def _named_line(fields: Mapping[str, Any], source: Source) -> dict[str, int]:
    """Returns the line that a finding names, if it is one of the artifact."""
    number, file = fields.get("line"), fields.get("file")
    ours = not file or str(file) in source.artifact_names
    return {"line": number} if ours and isinstance(number, int) else {}


def _quoted_line(fields: Mapping[str, Any], source: Source) -> str:
    named = _named_line(fields, source)
    return source.line(named["line"]) if named else ""
