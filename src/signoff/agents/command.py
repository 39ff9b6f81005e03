"""Any other program as an agent, by configuration alone.

    agents:
      aider:
        kind: command
        argv: [aider-headless, --model, "{model}", --cwd, "{workspace}"]
        prompt: stdin            # or file, with {prompt_file} in argv
        answer: json:choices.0.text   # or text, last_line, file (with {answer_file}), file:NAME
        codes: {3: transient, 4: auth}

The prompt never becomes an argument: it may be long, and everybody on the machine can read
arguments. No vendor's rules hold such a program back, so it may edit only where
`edits: true` says that it is trusted to; changes outside its workspace are found all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from signoff.agents.answer import whole_characters
from signoff.agents.base import Health
from signoff.agents.headless import HeadlessAgent
from signoff.agents.http_errors import without_secrets
from signoff.agents.program import Job, find
from signoff.agents.quota_resets import reset_in
from signoff.agents.reading import ProgramReply
from signoff.agents.structured import instruction
from signoff.agents.transcript import Transcript
from signoff.core.effects import AgentRequest, CommandResult
from signoff.core.spend import Usage
from signoff.documents.regular_files import read_regular
from signoff.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
    ConfigError,
)
from signoff.runtime.ports import Capabilities

MOST_ANSWER_BYTES = 64_000_000
"""Bytes of an answer file that are read."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_KNOWN = frozenset({"model", "workspace", "prompt_file", "answer_file", "schema_file"})
_ANSWERS = "text, last_line, file, file:NAME or json:PATH"
_FAMILIES: Mapping[str, type[AgentError]] = {
    "transient": AgentTransient,
    "quota": AgentQuota,
    "auth": AgentAuth,
    "refused": AgentRefused,
    "bad_request": AgentBadRequest,
    "bad_output": AgentBadOutput,
}


class CommandAgent(HeadlessAgent):
    """Answers with whatever program the settings describe."""

    capabilities = Capabilities(streaming=True)
    login = "log in as the program wants it, or pass its key with pass_env:"
    install = "install it, or correct argv: in the settings"
    oldest = ()
    keys = ()
    settings = ()

    def __init__(
        self,
        *,
        argv: Sequence[str],
        prompt: Literal["stdin", "file"] = "stdin",
        answer: str = "text",
        ok_codes: Sequence[int] = (0,),
        codes: Mapping[int, str] | None = None,
        usage: Mapping[str, str] | None = None,
        edits: bool = False,
        **common: Any,
    ) -> None:
        """Takes how the program is called, where its answer is and what its exit codes mean."""
        for option in {"path", "args", "key_env", "base_url", "vendor_retries"} & common.keys():
            raise ConfigError(
                f"a command has no option {option!r}; say it in argv, env or pass_env"
            )
        if isinstance(argv, str) or not argv:
            raise ConfigError("argv is a list: the program, then its arguments")
        self.name = Path(str(argv[0])).name
        super().__init__(path=str(argv[0]), **common)
        self._argv = [str(each) for each in argv]
        self._prompt_in = prompt
        self._answer = answer
        self.fine = tuple(ok_codes)
        self._codes = {int(code): family for code, family in (codes or {}).items()}
        self._usage = dict(usage or {})
        self._edits = edits
        self._check()
        self.capabilities = replace(
            self.capabilities,
            edits_files=edits,
            json_schema=self._uses("schema_file"),
            reports_price="usd" in self._usage or None,
        )

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments with what stands in braces filled in."""
        if request.edit and not self._edits:
            raise AgentBadRequest(
                f"{self.name} is not trusted to edit files (edits: true in the settings says it is)"
            )
        values = {
            "model": request.model,
            "workspace": str(Path(request.workspace).resolve()) if request.workspace else None,
            "prompt_file": str(scratch / "prompt.md"),
            "answer_file": str(scratch / "answer"),
            "schema_file": str(scratch / "schema.json"),
        }
        if self._uses("prompt_file"):
            _write(scratch / "prompt.md", self._text(request))
        if self._uses("schema_file"):
            _write(scratch / "schema.json", json.dumps(request.schema or {}))
        return [_filled(each, values) for each in self._argv[1:]]

    def prompt(self, request: AgentRequest) -> str:
        """Returns what goes to standard input: the prompt, or nothing when a file has it."""
        return self._text(request) if self._prompt_in == "stdin" else ""

    async def logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:  # noqa: ARG002  # nobody knows
        """Knows nothing about logins."""
        return None

    async def health(self) -> Health:
        """Looks whether the program is there; running it might do anything."""
        try:
            place = find(self.name, self._argv[0], lambda: None, self.install)
        except AgentError as error:
            return Health(False, str(error), self.install)
        return Health(True, f"{self.name} at {place}")

    def reader(self) -> _Deaf:
        """Returns somebody who leaves the output to the settings."""
        return _Deaf()

    async def _plain(self, job: Job, output: Transcript, ran: CommandResult) -> ProgramReply:
        if ran.code not in self.fine:
            return ProgramReply(fault=await self._failed(job, output, ran))
        text = output.text.strip("\n")
        try:
            return ProgramReply(_found(self._answer, text, job), usage=self._reported(text))
        except AgentBadOutput as error:
            return ProgramReply(fault=error)

    async def _failed(self, job: Job, output: Transcript, ran: CommandResult) -> AgentError:
        family = self._codes.get(ran.code)
        if family is None:
            return await super()._failed(job, output, ran)
        words = without_secrets((ran.stderr.strip() or output.text.strip())[-300:])
        message = f"{self.name} (exit code {ran.code}): {words}"
        if family == "quota":
            return AgentQuota(message, until=reset_in(words, datetime.now(UTC)))
        return _FAMILIES[family](message)

    def _text(self, request: AgentRequest) -> str:
        prompt = super().prompt(request)
        if request.schema is None or self._uses("schema_file"):
            return prompt
        return f"{prompt}\n\n{instruction(request.schema)}"

    def _uses(self, placeholder: str) -> bool:
        return any(f"{{{placeholder}}}" in each for each in self._argv)

    def _reported(self, text: str) -> Usage | None:
        if not self._usage:
            return None
        try:
            data = _json(text)
            numbers = {name: _number(_at(data, path)) for name, path in self._usage.items()}
        except AgentBadOutput:
            return None  # an answer without a bill is an answer of unknown cost
        return Usage(
            _whole(numbers.get("tokens_in")),
            _whole(numbers.get("tokens_out")),
            numbers.get("usd"),
        )

    def _check(self) -> None:
        """Finds what is wrong with the settings before the first call pays for it."""
        unknown = {name for each in self._argv for name in _PLACEHOLDER.findall(each)} - _KNOWN
        if unknown:
            raise ConfigError(
                f"{self.name}: argv has {{{min(unknown)}}}; what can stand in braces: "
                f"{', '.join(sorted(_KNOWN))} (a prompt is never an argument)"
            )
        if self._prompt_in not in ("stdin", "file"):
            raise ConfigError(f"{self.name}: prompt is stdin or file")
        if self._prompt_in == "file" and not self._uses("prompt_file"):
            raise ConfigError(f"{self.name}: prompt: file needs {{prompt_file}} in argv")
        if not re.fullmatch(r"text|last_line|file|file:.+|json:.+", self._answer):
            raise ConfigError(f"{self.name}: answer is {_ANSWERS}, not {self._answer!r}")
        if self._answer == "file" and not self._uses("answer_file"):
            raise ConfigError(f"{self.name}: answer: file needs {{answer_file}} in argv")
        for family in set(self._codes.values()) - _FAMILIES.keys():
            raise ConfigError(f"{self.name}: codes knows {', '.join(_FAMILIES)}, not {family!r}")
        for name in self._usage.keys() - {"tokens_in", "tokens_out", "usd"}:
            raise ConfigError(f"{self.name}: usage knows tokens_in, tokens_out, usd, not {name!r}")


class _Deaf:
    """Hears nothing while the program runs."""

    def event(self, data: dict[str, Any]) -> str | None:
        return f"{json.dumps(data)}\n"

    def complaint(self, line: str) -> None:
        pass

    def said(self) -> ProgramReply | None:
        return None


def _filled(argument: str, values: Mapping[str, str | None]) -> str:
    def value(found: re.Match[str]) -> str:
        filled = values[found[1]]
        if filled is None:
            raise AgentBadRequest(f"argv needs a {found[1]}, and this request has none")
        return filled

    return _PLACEHOLDER.sub(value, argument)


def _found(where: str, text: str, job: Job) -> str:
    """Returns the answer from where the settings say it is."""
    kind, _, place = where.partition(":")
    match kind:
        case "last_line":
            lines = [line for line in text.splitlines() if line.strip()]
            return lines[-1].strip() if lines else ""
        case "json":
            answer = _at(_json(text), place)
            return answer if isinstance(answer, str) else json.dumps(answer)
        case "file":
            return _read(
                Path(job.cwd, place) if place else Path(job.environment["TMPDIR"], "answer")
            )
        case _:
            return text


def _read(path: Path) -> str:
    try:
        # Read as text, an artifact's line ends would be changed.
        return read_regular(path, MOST_ANSWER_BYTES).decode("utf-8").strip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentBadOutput(f"the answer was to be in the file {path.name}: {error}") from error


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        lines = text.splitlines()
    try:
        return json.loads(lines[-1] if lines else "")
    except ValueError as error:
        raise AgentBadOutput(f"neither the output nor its last line is JSON: {error}") from error


def _at(data: Any, path: str) -> Any:
    """Returns what stands at a path such as `choices.0.text`."""
    here = data
    for step in path.split("."):
        try:
            here = here[int(step)] if isinstance(here, list) else here[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise AgentBadOutput(f"the output has nothing at {path!r} (no {step!r})") from None
    return here


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _write(path: Path, text: str) -> None:
    path.write_text(whole_characters(text), encoding="utf-8")
