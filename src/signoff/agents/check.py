"""A critic that computes instead of judging: a program or a Python function.

It costs nothing and always reports the same about the same text. Its findings count like
any critic's findings.

Three formats of output are understood: JSON, lines of `file:line: message`, and a bare exit code.
Output that cannot be parsed is never a pass, and a verdict is compared with the findings: a
pass with findings counts as a failure.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.base import Health, one_of
from signoff.agents.workspace import copy_project, project_folder, project_program, settings_folder
from signoff.core.effects import AgentRequest, CommandResult, Reply
from signoff.core.errors import (
    AgentBadOutput,
    AgentBadRequest,
    AgentTimeout,
    CommandFailed,
    ConfigError,
)
from signoff.core.severity import DEFAULT_SEVERITY, SEVERITIES, Severity
from signoff.documents.python_files import extend_import_path
from signoff.runtime.effect_errors import FREE
from signoff.runtime.environment import command_environment
from signoff.runtime.owner import scratch_folder
from signoff.runtime.paths import path_from
from signoff.runtime.ports import Call, Capabilities
from signoff.runtime.process import call_mark, run_process

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
        # A check can have thousands of findings, and a split for each would block the event loop.
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
    # JSON first, because a line of it can look like `file:line: message`.
    if output.lstrip()[:1] in ("{", "["):
        return _from_json(output, code, source)
    return _from_lines(output, code, source)


def _from_json(output: str, code: int, source: Source) -> dict[str, Any]:
    """Returns the critique from JSON: a list of findings, or a whole critique."""
    try:
        document = json.loads(output)
    except (RecursionError, ValueError) as error:
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
    fields = _from_line(finding) if isinstance(finding, str) else _from_mapping(finding, number)
    # Elsewhere nobody knows the temporary file with the text.
    file, line = str(fields.get("file") or ""), fields.get("line")
    is_ours = not file or file in source.artifact_names
    location = fields.get("location")
    if not location and line:
        location = f"line {line}" if is_ours else f"{file}:{line}"
    own_line = line if is_ours and isinstance(line, int) else None
    evidence = fields.get("evidence")
    if not evidence and own_line is not None:
        evidence = source.line(own_line)
    severity = str(fields.get("severity") or source.severity)
    severity = SEVERITY_WORDS.get(severity.lower(), severity)
    confidence = fields.get("confidence")
    edit = fields.get("edit")
    return {
        "id": str(fields.get("id") or f"{source.constraint}-{number:03d}"),
        "rule_id": str(fields.get("rule_id") or source.constraint),
        "severity": Severity.read(severity).value,
        "location": str(location or ""),
        **({} if own_line is None else {"line": own_line}),
        "finding": str(fields["finding"]),
        "evidence": str(evidence or ""),
        "suggested_fix": fields.get("suggested_fix"),
        "confidence": confidence if isinstance(confidence, int | float) else 1.0,
        # The edit that fixes it, where the check knows it exactly.
        **({"edit": dict(edit)} if isinstance(edit, Mapping) else {}),
    }


def _from_line(text: str) -> dict[str, Any]:
    match = _LINE.fullmatch(text.strip())
    if match is None:
        return {"finding": text}
    named = _RULE.fullmatch(match["message"])
    return {
        "finding": named["message"] if named else match["message"],
        "rule_id": named["rule"] if named else None,
        "severity": match["word"],
        "file": match["file"],
        "line": int(match["line"]),
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
    return fields


TIMEOUT_SECONDS = 120.0
FILE = "{file}"
"""The placeholder for the artifact's file in a command; without it, the text is piped in."""

CheckFunction = str | Callable[[str], Any]
"""A function of the artifact, as `module:function` or itself; it returns a list of findings."""

FILE_SCOPE, PROJECT_SCOPE = "file", "project"

_STDIN = frozenset({"-", "stdin", "<stdin>", "(stdin)", "/dev/stdin"})


@dataclass(kw_only=True, eq=False)
class CheckAgent:
    """Answers with a critique that a program or a function computes."""

    capabilities = Capabilities(free=True, is_model=False, deterministic=True)

    argv: Sequence[str] | None = None
    """The program and its arguments."""
    function: CheckFunction | None = None
    """What is called instead of a program."""
    findings: str = "auto"
    """The format of the output, one of `READERS`."""
    constraint: str = "check"
    severity: str = DEFAULT_SEVERITY
    broken_codes: Sequence[int] = (126, 127)
    """Exit codes that mean that the check itself failed."""
    suffix: str = ".md"
    """The ending of the artifact's file."""
    scope: str = FILE_SCOPE
    """With `project`, the program runs once for all files, in a copy of the project."""
    env: Mapping[str, str] | None = None
    """Variables to set."""
    pass_env: Sequence[str] = ()
    """Variables to pass on from this process."""
    timeout: float = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        argv = self.argv
        if (argv is None) == (self.function is None) or isinstance(argv, str) or argv == []:
            raise ConfigError("a check needs either argv, a list, or function, a module:function")
        self._argv = [str(argument) for argument in argv or ()]
        one_of("findings", self.findings, READERS)
        one_of("scope", self.scope, (FILE_SCOPE, PROJECT_SCOPE))
        if self.scope == PROJECT_SCOPE:
            if argv is None or any(FILE in each for each in self._argv):
                raise ConfigError(f"a check of the whole project needs argv, without {FILE}")
            self.capabilities = replace(self.capabilities, whole_project=True)
        if self.severity.upper() not in Severity.__members__:
            raise ConfigError(f"severity must be one of: {SEVERITIES}, not {self.severity!r}")
        if isinstance(self.pass_env, str) or not isinstance(self.pass_env, Sequence):
            raise ConfigError("pass_env must be a list of names")

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Checks the request's `artifact` option, or its whole prompt."""
        artifact = str(request.options.get("artifact", request.prompt))
        constraint = str(request.options.get("constraint", self.constraint))
        source = Source(constraint, self.severity.upper(), artifact, _STDIN | _names_of(request))
        try:
            async with asyncio.timeout(self.timeout):
                if self.function is not None:
                    critique = await _call(self.function, artifact, source)
                else:
                    critique = await self._run(source, request, call)
        except TimeoutError:
            raise AgentTimeout(f"the check took longer than {self.timeout:g} seconds") from None
        call.emit(f"{critique['overall']}: {critique['summary']}\n")
        text = json.dumps(critique, ensure_ascii=False)
        return judge(ModelAnswer(text, finish="checked", usage=FREE), request.schema or {})

    async def health(self) -> Health:
        """Checks that the program or the function exists."""
        if self.function is not None:
            try:
                _load(self.function)
            except AgentBadRequest as error:
                return Health(False, str(error), "fix `function:` in the settings")
            return Health(True, f"function {_name(self.function)}")
        program = shutil.which(project_program(self._argv[0]))
        if program is None:
            return Health(False, f"{self._argv[0]} is not on PATH", f"install {self._argv[0]}")
        return Health(True, program)

    async def _run(self, source: Source, request: AgentRequest, call: Call) -> dict[str, Any]:
        started = path_from(call.folder)
        if self.capabilities.whole_project:
            return await self._run_on_copy(source, request, request.workspace or started, call)
        folder = request.workspace or settings_folder(started)
        in_file = any(FILE in argument for argument in self._argv)
        with scratch_folder() as scratch:
            file = scratch / f"artifact{self.suffix}"
            if in_file:
                file.write_text(source.artifact, encoding="utf-8", errors="replace")
                names = frozenset({str(file), file.name})
                source = replace(source, artifact_names=source.artifact_names - _STDIN | names)
            argv = [argument.replace(FILE, str(file)) for argument in self._argv]
            stdin = None if in_file else source.artifact
            return self._critique(await self._start(argv, folder, stdin, call), source)

    async def _run_on_copy(
        self, source: Source, request: AgentRequest, folder: str | None, call: Call
    ) -> dict[str, Any]:
        project = project_folder(Path(folder or Path.cwd()), os.environ)
        with scratch_folder() as scratch:
            copy = scratch / (project.name or "project")
            files = request.options.get("texts", {})
            await asyncio.to_thread(copy_project, project, copy, files)
            result = await self._start(self._argv, str(copy), None, call)
        # The copy has another name in every round; in evidence it would look like a change.
        stdout, stderr = (each.replace(f"{copy}/", "") for each in (result.stdout, result.stderr))
        return self._critique(replace(result, stdout=stdout, stderr=stderr), source)

    async def _start(
        self, argv: Sequence[str], folder: str | None, stdin: str | None, call: Call
    ) -> CommandResult:
        env = {str(name): str(value) for name, value in (self.env or {}).items()}
        try:
            return await run_process(
                argv,
                cwd=folder,
                stdin=stdin,
                env=command_environment(self.pass_env, env),
                mark=call_mark(call),
                started=call.started,
            )
        except CommandFailed as error:
            raise AgentBadRequest(f"the check cannot be started: {error}") from error

    def _critique(self, result: CommandResult, source: Source) -> dict[str, Any]:
        if result.code < 0 or result.code in self.broken_codes:
            reason = (result.stderr or result.stdout).strip().splitlines()[-1:]
            raise AgentBadOutput(
                f"the check itself failed with exit code {result.code}: {''.join(reason):.300}"
            )
        # Of a program that executes the project, a crash may be what the change has broken.
        crashes = result.code != 0 and not self.capabilities.whole_project
        if crashes and (why := crash_of(result.stdout, result.stderr, source)):
            name = " ".join(self._argv)
            raise AgentBadOutput(
                f"the check itself crashed ({name:.100}, exit code {result.code}): {why:.300}"
            )
        # Linters differ in where they print, but hardly any prints findings to both.
        output = result.stdout if result.stdout.strip() else result.stderr
        return READERS[self.findings](output, result.code, source)


async def _call(check: CheckFunction, artifact: str, source: Source) -> dict[str, Any]:
    function, name = _load(check), _name(check)
    try:
        result = await asyncio.to_thread(function, artifact)
        if inspect.isawaitable(result):
            result = await result
    except TimeoutError:
        raise
    except Exception as error:
        # A check that fails has not passed the artifact.
        raise AgentBadOutput(f"{name} raised {type(error).__name__}: {error}") from error
    # A function that only raises or returns nothing is a valid check, as in a test.
    if result is None or result is True:
        return build_critique([], source)
    if result is False:
        return build_critique([f"{name} returned False"], source)
    if isinstance(result, str | Mapping) or not hasattr(result, "__iter__"):
        raise AgentBadOutput(
            f"{name} returned {type(result).__name__}; it must return a list of findings"
        )
    return build_critique(result, source)


def _names_of(request: AgentRequest) -> frozenset[str]:
    """Returns what a check may call the file that it gets; nothing if the text has no file."""
    path = str(request.options.get("path", ""))
    return frozenset({path, f"./{path}", Path(path).name}) if path else frozenset()


def _name(check: CheckFunction) -> str:
    return check if isinstance(check, str) else str(getattr(check, "__name__", "the check"))


def _load(path: CheckFunction) -> Callable[[str], Any]:
    if not isinstance(path, str):
        return path
    module, _, name = path.partition(":")
    extend_import_path(module)
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise AgentBadRequest(f"the check {path!r} cannot be loaded: {error}") from error
    if not callable(function):
        raise AgentBadRequest(f"the check {path!r} is not a function")
    return function  # type: ignore[no-any-return]  # the user's own
