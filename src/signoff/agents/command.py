"""Any other program as an agent, by configuration alone.

    agents:
      aider:
        kind: command
        argv: [aider-headless, --model, "{model}", --cwd, "{workspace}"]
        prompt: stdin            # or file, with {prompt_file} in argv
        answer: json:choices.0.text   # or text, last_line, file (with {answer_file}), file:NAME
        codes: {3: transient, 4: auth}

A program named by a path, and an argument that names a file of the project, are found in the
project; `{project_root}` is its folder. The prompt is never an argument: it may be long, and
every user of the machine can read arguments. No vendor's rules restrict such a program, so it may
edit only when `edits: true` declares it trusted. Changes outside its workspace are detected all
the same.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from signoff.agents.answer import cached_count, with_schema
from signoff.agents.base import Health, one_of
from signoff.agents.failures import find_reset_time, redact_line
from signoff.agents.headless import (
    VENDOR_RETRIES,
    HeadlessAgent,
    Job,
    ProgramReply,
    Transcript,
    find_program,
)
from signoff.agents.workspace import project_program, settings_folder
from signoff.core.effects import AgentRequest, CommandResult
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentQuota,
    AgentRefused,
    AgentTransient,
    ConfigError,
)
from signoff.core.spend import USAGE_AMOUNTS, Usage
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.documents.regular_files import read_regular
from signoff.runtime.ports import Capabilities

MAX_ANSWER_BYTES = 64_000_000
"""A larger answer file is refused."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_PLACEHOLDERS = frozenset({"model", "workspace", "prompt_file", "answer_file", "project_root"})
_ANSWERS = "text, last_line, file, file:NAME or json:PATH"
_ERRORS: Mapping[str, type[AgentError]] = {
    "transient": AgentTransient,
    "quota": AgentQuota,
    "auth": AgentAuth,
    "refused": AgentRefused,
    "bad_request": AgentBadRequest,
    "bad_output": AgentBadOutput,
}


@dataclass(kw_only=True, eq=False, repr=False)
class CommandAgent(HeadlessAgent):
    """Answers with the program that the settings describe."""

    capabilities = Capabilities(streaming=True)
    login_hint = "log in with the program itself, or pass its key with pass_env:"
    install_hint = "install it, or fix argv: in the settings"

    argv: Sequence[str]
    """The program and its arguments."""
    prompt: str = "stdin"
    """Where the prompt goes: `stdin` or `file`."""
    answer: str = "text"
    """Where the answer is; see `_ANSWERS`."""
    ok_codes: Sequence[int] = (0,)
    codes: Mapping[int, str] = field(default_factory=dict)
    """The error that an exit code means; see `_ERRORS`."""
    usage: Mapping[str, str] = field(default_factory=dict)
    """Where the output has each amount of `USAGE_AMOUNTS`."""
    edits: bool = False
    """Whether it is trusted to edit its workspace."""

    def __post_init__(self) -> None:
        super().__post_init__()
        others = (self.path, self.args, self.key_env, self.base_url)
        if any(others) or self.vendor_retries != VENDOR_RETRIES:
            raise ConfigError(
                "a command has no path, args, key_env, base_url and vendor_retries; use argv, env "
                "or pass_env instead"
            )
        if isinstance(self.argv, str) or not self.argv:
            raise ConfigError("argv must be a list: the program, then its arguments")
        self.argv = [str(argument) for argument in self.argv]
        # In YAML, `codes:` with nothing below it is null.
        self.codes = {int(code): family for code, family in (self.codes or {}).items()}
        self.usage = self.usage or {}
        self.name = Path(self.argv[0]).name
        self._check()
        self.capabilities = replace(
            self.capabilities,
            edits_files=self.edits,
            reports_price="usd" in self.usage or None,
            # A program that gets a model's name or edits files is a model's. Any other may be a
            # spell checker, which would get files to fix.
            named_only=not (self.edits or self._uses("model") or self.model),
        )

    def has_succeeded(self, exit_code: int) -> bool:
        """Returns whether an exit code is one of `ok_codes`."""
        return exit_code in self.ok_codes

    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the arguments with their placeholders filled in."""
        if request.edit and not self.edits:
            raise AgentBadRequest(
                f"{self.name} may not edit files (edits: true in the settings allows it)"
            )
        values = {
            "model": request.model,
            "workspace": str(Path(request.workspace).resolve()) if request.workspace else None,
            "prompt_file": str(scratch / "prompt.md"),
            "answer_file": str(scratch / "answer"),
            "project_root": settings_folder(None),
        }
        if self._uses("prompt_file"):
            text = replace_lone_surrogates(self._text(request))
            (scratch / "prompt.md").write_text(text, encoding="utf-8")
        folder = Path(request.workspace or scratch)
        # Values are filled into single arguments, never into a line that is split later, so a name
        # with a space or a quote stays one argument.
        return [_in_project(_fill(argument, values), folder) for argument in self.argv[1:]]

    def input_text(self, request: AgentRequest) -> str:
        """Returns what goes to standard input: the prompt, or nothing when it goes to a file."""
        return self._text(request) if self.prompt == "stdin" else ""

    async def health(self) -> Health:
        """Checks that the program exists; it is not started, since that might do anything."""
        try:
            path = self._find_program()
        except AgentError as error:
            return Health(False, str(error), self.install_hint)
        return Health(True, f"{self.name} at {path}")

    def _find_program(self) -> str:
        """Finds the program; one that is named by a path is in the project, as a check's is."""
        name = self.argv[0].replace("{project_root}", settings_folder(None))
        return find_program(self.name, project_program(name), ()) or ""

    def read_output(self, reply: ProgramReply, job: Job, output: Transcript) -> ProgramReply:  # noqa: ARG002  # it has no events
        """Returns the answer from the source that the settings name."""
        text = output.text.strip("\n")
        return ProgramReply(_extract(self.answer, text, job), usage=self._parse_usage(text))

    def _exit_error(self, output: Transcript, result: CommandResult) -> AgentError:
        # The author of the settings knows this program; what its text looks like is only a guess.
        kind = self.codes.get(result.code)
        if kind is None:
            return super()._exit_error(output, result)
        text = redact_line((result.stderr.strip() or output.text.strip())[-300:])
        message = f"{self.name} (exit code {result.code}): {text}"
        if kind == "quota":
            return AgentQuota(message, until=find_reset_time(text, datetime.now(UTC)))
        return _ERRORS[kind](message)

    def _text(self, request: AgentRequest) -> str:
        return with_schema(super().input_text(request), request.schema)

    def _uses(self, placeholder: str) -> bool:
        return any(f"{{{placeholder}}}" in argument for argument in self.argv)

    def _parse_usage(self, text: str) -> Usage | None:
        if not self.usage:
            return None
        counts: dict[str, Any] = {}
        try:
            data = _parse_json(text)
            for name, path in self.usage.items():
                value = _value_at(data, path)
                counts[name] = value if name == "usd" else cached_count(value)
        except AgentBadOutput:
            return None  # the answer counts; only its cost is unknown
        return Usage(**counts).cleaned()

    def _check(self) -> None:
        """Raises `ConfigError` for wrong settings before the first call is billed."""
        unknown = {
            name for argument in self.argv for name in _PLACEHOLDER.findall(argument)
        } - _PLACEHOLDERS
        if unknown:
            raise ConfigError(
                f"unknown placeholder {{{min(unknown)}}} in argv (placeholders: "
                f"{', '.join(sorted(_PLACEHOLDERS))}; a prompt is never an argument)"
            )
        one_of("prompt", self.prompt, ("stdin", "file"))
        if self.prompt == "file" and not self._uses("prompt_file"):
            raise ConfigError("prompt: file needs {prompt_file} in argv")
        if not re.fullmatch(r"text|last_line|file|file:.+|json:.+", self.answer):
            raise ConfigError(f"answer must be {_ANSWERS}, not {self.answer!r}")
        if self.answer == "file" and not self._uses("answer_file"):
            raise ConfigError("answer: file needs {answer_file} in argv")
        for kind in self.codes.values():
            one_of("codes", kind, _ERRORS)
        for name in self.usage:
            one_of("usage", name, USAGE_AMOUNTS)


def _fill(argument: str, values: Mapping[str, str | None]) -> str:
    def replacement(match: re.Match[str]) -> str:
        value = values[match[1]]
        if value is None:
            raise AgentBadRequest(f"argv needs a {match[1]}, and this request has none")
        return value

    return _PLACEHOLDER.sub(replacement, argument)


def _in_project(argument: str, folder: Path) -> str:
    """Returns the path of a file of the project, such as a script; other arguments unchanged.

    The program works in a folder of its own. A file that is there, too, is the one it is about.
    """
    if not argument or argument.startswith("-") or os.path.lexists(folder / argument):
        return argument
    file = Path(settings_folder(None), argument)
    return str(file) if file.is_file() else argument


def _extract(source: str, text: str, job: Job) -> str:
    """Returns the answer from the source that the settings name."""
    kind, _, detail = source.partition(":")
    match kind:
        case "last_line":
            return (text.strip().splitlines() or [""])[-1].strip()
        case "json":
            answer = _value_at(_parse_json(text), detail)
            return answer if isinstance(answer, str) else json.dumps(answer)
        case "file":
            own_file = Path(job.environment["TMPDIR"], "answer")
            return _read(Path(job.cwd, detail) if detail else own_file)
        case _:
            return text


def _read(path: Path) -> str:
    try:
        # Text mode would change the line ends of an artifact.
        return read_regular(path, MAX_ANSWER_BYTES).decode("utf-8").strip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise AgentBadOutput(f"the answer file {path.name} cannot be read: {error}") from error


def _parse_json(text: str) -> Any:
    with suppress(RecursionError, ValueError):
        return json.loads(text)
    try:
        return json.loads((text.splitlines() or [""])[-1])
    except (RecursionError, ValueError) as error:
        raise AgentBadOutput(f"neither the output nor its last line is JSON: {error}") from error


def _value_at(data: Any, path: str) -> Any:
    """Returns the value at a path such as `choices.0.text`."""
    value = data
    for step in path.split("."):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise AgentBadOutput(f"the output has nothing at {path!r} (no {step!r})") from None
    return value
