"""What the agents that are programs share: one call, from request to reply.

A subclass knows how its program is called and how its JSON is read. Success is judged by
the JSON and by what the program was denied, never by the exit code alone.

In edit mode the program may write to the workspace and nowhere else, enforced by its
vendor's own rules, which are never switched off. Changes there are recorded as diffs. A
change elsewhere in the project fails the call with `AgentRefused`, which names the files;
they stay as they are. `outside: note` in the settings records such changes instead, for
users who work in the same project while agents run. A call on its own working copy notes
them by default: its result does not depend on other files.

The program gets its prompt on standard input, its own environment and a time limit. When
it ends, is cancelled or takes too long, its process group and everything that detached
from it are gone before the caller continues.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from signoff.agents import workspace as ws
from signoff.agents.answer import MAX_CHARACTERS, ModelAnswer, judge
from signoff.agents.base import Health, one_of, positive_seconds, whole_number
from signoff.agents.failures import USAGE_ERROR, failure_error
from signoff.agents.http import read_key
from signoff.agents.kinds import bundled_program
from signoff.core.effects import AgentRequest, CommandResult, Reply
from signoff.core.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentRefused,
    AgentTimeout,
    AgentTransient,
    CommandFailed,
    ConfigError,
)
from signoff.documents.control_characters import replace_lone_surrogates
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.environment import Secrets, program_environment
from signoff.runtime.extras import install_command
from signoff.runtime.owner import scratch_folder
from signoff.runtime.ports import Call, Capabilities
from signoff.runtime.process import Sink, call_mark, end_orphans, run_process

MAX_OUTPUT_BYTES = 64_000_000
"""A program that prints more than this never ends; it is stopped."""

MAX_ERROR_LINE_BYTES = 20_000
"""How much is kept of a line of standard error that does not end."""


class LineSplitter:
    """Splits a byte stream into lines as it arrives; of a long line, the end is kept."""

    def __init__(
        self, on_line: Callable[[str], None], max_bytes: int = MAX_ERROR_LINE_BYTES
    ) -> None:
        self._on_line = on_line
        self._max_bytes = max_bytes
        self._rest = bytearray()

    def add(self, chunk: bytes) -> None:
        """Adds the next chunk."""
        self._rest += chunk
        # Split only at a line end: a line of many megabytes arrives in thousands of chunks.
        if b"\n" in chunk:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._on_line(line.decode("utf-8", "replace"))
        del self._rest[: -self._max_bytes]


class Transcript:
    """Standard output of one program run; its attributes are set by `close`."""

    text = ""
    """The whole output; bytes that are not UTF-8 become replacement characters."""
    is_valid_utf8 = True

    def __init__(
        self, on_object: Callable[[dict[str, Any]], None], on_line: Callable[[str], None]
    ) -> None:
        """Takes the callbacks for JSON objects and for other lines."""
        self._on_object = on_object
        self._on_line = on_line
        self._lines = LineSplitter(self._read_line, MAX_OUTPUT_BYTES)
        self._output = bytearray()
        self.objects = 0
        """How many JSON objects it had."""

    def add(self, chunk: bytes) -> None:
        """Adds the next chunk; raises `AgentBadOutput` when the output grows too large."""
        if len(self._output) + len(chunk) > MAX_OUTPUT_BYTES:
            raise AgentBadOutput(
                f"it printed more than {MAX_OUTPUT_BYTES // 1_000_000} MB and was stopped; "
                "ask for less, or check what it repeats"
            )
        self._output += chunk
        self._lines.add(chunk)

    def close(self) -> None:
        """Ends the last line; a single JSON document over many lines is passed on whole."""
        self._lines.add(b"\n")
        self.text = self._output.decode("utf-8", "replace")
        # A replacement character does not encode back to the bytes that it replaced.
        self.is_valid_utf8 = self.text.encode() == self._output
        if self.objects:
            return
        document = _parse_json(self.text)
        for part in document if isinstance(document, list) else [document]:
            if isinstance(part, dict):
                self._on_object(part)

    def _read_line(self, line: str) -> None:
        line = line.strip()
        data = _parse_json(line) if line.startswith("{") else None
        if data is not None:
            self.objects += 1
            self._on_object(data)
        elif line:
            self._on_line(line)


def _parse_json(text: str) -> Any:
    """Returns the JSON value of a text; None if it has none, or is nested too deeply to read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class ProgramReply(ModelAnswer):
    """A model's answer, with what the program reports about its own run."""

    complete: bool = True
    """Whether the program reported an end; without one its output was cut off."""
    denied: tuple[str, ...] = ()
    """Actions that the program was not allowed to take."""
    fault: AgentError | None = None
    """The error that the program reports."""


class OutputReader:
    """Reads one vendor's JSON; a new one is created for each call.

    This base displays the output and recognizes nothing in it.
    """

    def __init__(self, retries: int = 0) -> None:
        """Takes how often the program may retry by itself."""
        self.retries = retries
        self.reply = ProgramReply(complete=False)
        """The reply so far."""

    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one JSON object as it arrives and returns its text to display, if any.

        An empty text tells that the model begins to answer, and None that there is nothing to tell.

        Raises `AgentError` when there is no point in continuing.
        """
        return f"{json.dumps(data)}\n"

    def read_stderr(self, line: str) -> None:
        """Reads one line of standard error; raises `AgentError` likewise."""

    def update(self, **fields: Any) -> None:
        """Adds fields of a vendor's event to the reply."""
        self.reply = replace(self.reply, **fields)

    def deny(self, action: str) -> None:
        """Adds an action that the program was not allowed to take, unless it is listed already."""
        # Some programs report a denial twice: as an event and on standard error.
        denied = dict.fromkeys((*self.reply.denied, action[:200]))
        self.reply = replace(self.reply, denied=tuple(denied))


TIMEOUT_SECONDS = 1800.0
"""A coding agent may work for a while; after this long it hangs."""

VENDOR_RETRIES = 2
"""How often a vendor's program may retry by itself, before the engine's own retries."""

PROBE_SECONDS = 60.0
"""How long a program may take to print its version; on a busy machine, many seconds."""

_VERSION = re.compile(r"\b(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?")


@dataclass(frozen=True)
class Job:
    """One run of a program."""

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    seconds: float
    stdin: str = ""

    @cached_property
    def secrets(self) -> Secrets:
        """The secrets that the program can see, and so might print."""
        return Secrets.of(self.environment)


async def run_program(job: Job, call: Call, out: Sink, err: Sink) -> CommandResult:
    """Runs a program to its end; raises `AgentTimeout`, or what `out` or `err` raise."""
    mark = call_mark(call)
    try:
        async with asyncio.timeout(job.seconds):
            return await run_process(
                job.argv,
                cwd=job.cwd,
                stdin=job.stdin,
                env=job.environment,
                mark=mark,
                started=call.started,
                out=out,
                err=err,
            )
    except TimeoutError:
        name = Path(job.argv[0]).name
        raise AgentTimeout(
            f"{name} gave no answer within {job.seconds:g} seconds and was stopped "
            "(to allow more, raise timeout: in the settings)"
        ) from None
    except CommandFailed as error:
        text = str(error)
        busy = "Resource temporarily unavailable" in text or "Cannot allocate memory" in text
        raise (AgentTransient if busy else AgentBadRequest)(text) from error
    finally:
        # Cancellation must not interrupt the cleanup: no process of the call may survive it.
        await asyncio.shield(asyncio.ensure_future(end_orphans(mark)))


def find_program(name: str, path: str | None, bundled: Sequence[str]) -> str | None:
    """Returns the absolute path of a program: as configured, on PATH, or inside its package.

    The path is absolute because the program is started in another folder. `bundled` names a
    package and the program's path in it. None means that the program is not installed.
    """
    program = shutil.which(name if path is None else str(Path(path).expanduser()))
    if program is None and path is not None:
        raise AgentBadRequest(f"no program at {path} (path: in the settings of {name})")
    program = program or bundled_program(bundled)
    return str(Path(program).absolute()) if program is not None else None


async def probe(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Returns the exit code and the output of a short command, such as `--version`."""
    try:
        result = await run_process(argv, env=environment, seconds=PROBE_SECONDS)
    except CommandFailed as error:
        return -1, str(error)
    return result.code, (result.stdout.strip() or result.stderr.strip())


def parse_version(text: str) -> tuple[int, ...] | None:
    """Returns the version that a program printed, or None."""
    match = _VERSION.search(text)
    return tuple(int(part or 0) for part in match.groups()) if match else None


READ_ONLY = "You can read the files in this folder, but not change any."


@dataclass(kw_only=True, eq=False, repr=False)
class HeadlessAgent(ABC):
    """A program on this machine that answers prompts; each subclass knows one program.

    Its fields are the options of the settings. The program is searched on first use.
    """

    name = ""
    capabilities = Capabilities()
    reader: ClassVar[type[OutputReader]] = OutputReader
    """Reads the program's output."""
    login_hint: ClassVar[str]
    """What to do when the program is not logged in."""
    install_hint: ClassVar[str]
    """What to do when the program is missing or too old."""
    extra: ClassVar[str] = ""
    """The extra of signoff that installs it, if there is one."""
    bundled: ClassVar[tuple[str, ...]] = ()
    """The package that contains the program, and the program's path in it."""
    minimum_version: ClassVar[tuple[int, ...]] = ()
    """The first version whose output is understood."""
    key_variables: ClassVar[tuple[str, ...]] = ()
    """Environment variables that hold the vendor's keys."""
    setting_variables: ClassVar[tuple[str, ...]] = ()
    """Other environment variables that configure the program."""
    address_variable: ClassVar[str] = ""
    """The environment variable that points the program at another server."""
    status_by_exit_code: ClassVar[Mapping[int, int]] = {}
    """The HTTP status that an exit code means, for programs that use such codes."""

    path: str | None = None
    """Where the program is, if not on PATH."""
    model: str | None = None
    timeout: float = TIMEOUT_SECONDS
    env: Mapping[str, str] | None = None
    """Variables to set."""
    pass_env: Sequence[str] = ()
    """Variables to pass on from this process."""
    args: Sequence[str] = ()
    base_url: str | None = None
    """Another server than the vendor's."""
    key_env: str | None = None
    """The variable that holds the key."""
    vendor_retries: int = VENDOR_RETRIES
    outside: Literal["refuse", "note"] | None = None
    """What to do about changes outside the workspace; None depends on the request."""

    def __post_init__(self) -> None:
        if not isinstance(self.args, list | tuple) or not isinstance(self.pass_env, list | tuple):
            raise ConfigError("args and pass_env must be lists")
        if self.env is not None and not isinstance(self.env, Mapping):
            raise ConfigError("env must map variable names to values")
        if self.outside is not None:
            one_of("outside", self.outside, ("refuse", "note"))
        positive_seconds("timeout", self.timeout)
        whole_number("vendor_retries", self.vendor_retries, minimum=0)

    @abstractmethod
    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns the program's arguments for one request."""

    def has_succeeded(self, exit_code: int) -> bool:
        """Returns whether an exit code is that of a success."""
        return exit_code == 0

    def input_text(self, request: AgentRequest) -> str:
        """Returns what goes to standard input."""
        # A denied edit counts as work that is missing, so the program should not try one.
        note = READ_ONLY if request.workspace is not None and not request.edit else None
        return "\n\n".join(part for part in (request.system, request.prompt, note) if part)

    def variables(self) -> dict[str, str]:
        """Returns environment variables that this program always gets."""
        return {}

    async def is_logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:  # noqa: ARG002  # for subclasses
        """Returns whether the program has a login, at no cost; None if that is unknown."""
        return None

    def read_output(self, reply: ProgramReply, job: Job, output: Transcript) -> ProgramReply:  # noqa: ARG002  # for subclasses
        """Returns the reply of a program that has succeeded; `reply` is what its events say."""
        return reply

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Runs the program once and returns its answer."""
        request = replace(request, model=request.model or self.model)
        for option in request.options:
            call.emit(f"{self.name} has no option {option!r}; ignoring it\n")
        with scratch_folder() as scratch:
            job = self._job(request, scratch)
            if not request.edit:
                return await self._attempt(job, request, call)
            with ws.editing(Path(job.cwd)):
                return await self._edit(job, request, call)

    async def _edit(self, job: Job, request: AgentRequest, call: Call) -> Reply:
        # In a thread: a large project takes seconds to read, and other runs go on meanwhile.
        before = await asyncio.to_thread(ws.take_snapshot, Path(job.cwd))
        try:
            reply = await self._attempt(job, request, call)
        except AgentError as error:
            if request.copied:
                # The copy is discarded with its changes; a retry starts from the original files.
                raise
            changes = await asyncio.to_thread(ws.changes_since, before)
            failure = _with_leftovers(error, [*changes.inside, *changes.outside])
            raise failure from (error.__cause__ if failure is error else error)
        changes = await asyncio.to_thread(ws.changes_since, before)
        return self._with_changes(reply, changes, job.secrets, copied=request.copied)

    async def health(self) -> Health:
        """Checks the program, its version and its login."""
        try:
            program, environment = self._find_program(), self._environment({})
        except AgentAuth as error:
            return Health(False, str(error), self.login_hint)
        except AgentError as error:
            return Health(False, str(error), self._install_hint, absent=True)
        logged_in, (code, output) = await asyncio.gather(
            self.is_logged_in(program, environment), probe([program, "--version"], environment)
        )
        # Without a login the version does not matter, and None means that it cannot be told.
        if logged_in is False:
            return Health(False, f"{self.name} is not logged in", self.login_hint)
        version = parse_version(output)
        if code != 0 and version is None:
            detail = f"{program} --version failed: {output:.200}"
            return Health(False, detail, self._install_hint)
        if version is not None and version < self.minimum_version:
            detail = f"{self.name} {_format_version(version)} is too old"
            return Health(False, detail, self._install_hint)
        label = _format_version(version) if version else "of unknown version"
        return Health(True, f"{self.name} {label} at {program}")

    @property
    def _install_hint(self) -> str:
        if not self.extra:
            return self.install_hint
        return f"{install_command(self.extra)}, or {self.install_hint}"

    def _find_program(self) -> str:
        program = find_program(self.name, self.path, self.bundled)
        if program is None:
            raise AgentBadRequest(f"{self.name} is not installed: {self._install_hint}")
        return program

    def _job(self, request: AgentRequest, scratch: Path) -> Job:
        program = self._find_program()
        folder = _working_folder(request, scratch)
        environment = self._environment({"TMPDIR": str(scratch)})
        argv = [program, *map(str, self.arguments(request, scratch))]
        prompt = replace_lone_surrogates(self.input_text(request))
        return Job(argv, str(folder), environment, self.timeout, prompt)

    def _environment(self, fixed: Mapping[str, str]) -> dict[str, str]:
        """Returns the program's environment, with the vendor's keys only for the vendor's server.

        Another server gets a key only when `key_env` names the variable that holds it.
        """
        # The user's `env:` comes last and wins: it may point the program at another server on
        # purpose, and then the vendor's keys are left out below.
        own = {str(name): str(value) for name, value in (self.env or {}).items()}
        names = {*self.setting_variables, *self.pass_env}
        fixed = {**fixed, **self.variables()}
        if self.base_url is not None and self.address_variable:
            fixed[self.address_variable] = self.base_url
        key = read_key(self.key_env)
        if key is not None:
            fixed[self.key_variables[0]] = key
        elif self.base_url is None and self.address_variable not in own:
            names.update(self.key_variables)
        return program_environment(names, {**fixed, **own})

    async def _attempt(self, job: Job, request: AgentRequest, call: Call) -> Reply:
        reader = self.reader(self.vendor_retries)

        def emit(text: str | None) -> None:
            if text is not None:
                call.emit(job.secrets.hide(text))

        output = Transcript(
            lambda data: emit(reader.read_event(data)), lambda line: emit(f"{line}\n")
        )
        try:
            result = await run_program(job, call, output.add, LineSplitter(reader.read_stderr).add)
            output.close()
            reply = reader.reply
            if self.has_succeeded(result.code):
                reply = self.read_output(reply, job, output)
            if reply.usage is not None and reply.usage.model is None:
                # Prices depend on the model, and most programs do not report it.
                reply = replace(reply, usage=replace(reply.usage, model=request.model))
            error = self._reply_error(request, reply, output, result)
            if error is not None:
                raise with_usage(error, reply.usage)
            # Redact before parsing, or the parsed value would still contain the secret.
            text = job.secrets.hide(replace_lone_surrogates(reply.text))
            return judge(replace(reply, text=text, may_be_silent=request.edit), request.schema)
        except AgentError as error:
            # Errors are stored and displayed, and they quote what the program printed.
            error.args = tuple(job.secrets.hide(str(argument)) for argument in error.args)
            raise error from error.__cause__

    def _reply_error(
        self, request: AgentRequest, reply: ProgramReply, output: Transcript, result: CommandResult
    ) -> AgentError | None:
        # The order matters. What the program itself reports is more precise than a denial, and a
        # denial more precise than the exit code, which some programs leave at 0 in both cases.
        if reply.fault is not None:
            return reply.fault
        if reply.denied:
            remedy = "the request is read-only; ask with edit=True and a workspace"
            if request.edit:
                remedy = "only its workspace is writable; widen the workspace, or change the prompt"
            return AgentRefused(f"{self.name} was denied: {'; '.join(reply.denied[:5])} ({remedy})")
        if not self.has_succeeded(result.code):
            return self._exit_error(output, result)
        if not reply.complete:
            # A stream that broke off may be whole the next time. Whatever prints no event at all
            # will not do better, and every try may be billed.
            kind = AgentTransient if output.objects else AgentBadOutput
            return kind(f"{self.name} ended before its result: {_last_lines(output.text):.200}")
        if not output.is_valid_utf8:
            return AgentBadOutput(f"{self.name} printed bytes that are not UTF-8")
        if len(reply.text) > MAX_CHARACTERS:
            return AgentBadOutput(f"the answer is longer than {MAX_CHARACTERS:,} characters")
        return None

    def _exit_error(self, output: Transcript, result: CommandResult) -> AgentError:
        text = _last_lines(result.stderr) or _last_lines(output.text)
        if result.code < 0:
            return AgentTransient(f"{self.name} was killed by signal {-result.code}: {text:.200}")
        if USAGE_ERROR.search(result.stderr):
            minimum = _format_version(self.minimum_version)
            return AgentBadRequest(
                f"{self.name} does not accept its arguments: {text:.200}; version {minimum} or "
                f"newer is needed: {self._install_hint}"
            )
        source = f"{self.name} (exit code {result.code})"
        status = self.status_by_exit_code.get(result.code)
        return failure_error(source, text, remedy=self.login_hint, status=status)

    def _with_changes(
        self, reply: Reply, changes: ws.Changes, secrets: Secrets, *, copied: bool
    ) -> Reply:
        files = changes.inside
        for path, diff in files.items():
            if variable := secrets.name_in(diff):
                problem = f"{path}, which {self.name} changed, contains the value of {variable}"
                raise with_usage(AgentRefused(f"{problem}; remove it"), reply.usage)
        if not changes.outside:
            return replace(reply, files=files)
        # The result of a working copy is complete, whatever else changed meanwhile.
        if (self.outside or ("note" if copied else "refuse")) == "refuse":
            listed = ", ".join(changes.outside[:5])
            more = f" and {len(changes.outside) - 5} more" if len(changes.outside) > 5 else ""
            message = (
                f"files outside the workspace changed while {self.name} worked: {listed}{more}; "
                "check them and undo what you do not want (outside: note in the settings accepts "
                "such calls)"
            )
            raise with_usage(AgentRefused(message), reply.usage)
        notes = dict.fromkeys(changes.outside, "changed outside the workspace\n")
        return replace(reply, files={**files, **notes})


def _working_folder(request: AgentRequest, scratch: Path) -> Path:
    """Returns the folder the program works in: its workspace, or an empty one."""
    if request.workspace is None:
        if request.edit:
            raise AgentBadRequest("editing needs a workspace: pass workspace= with edit=True")
        empty = scratch / "empty"
        empty.mkdir()
        return empty
    folder = Path(request.workspace).expanduser().resolve()
    if not folder.is_dir():
        raise AgentBadRequest(f"the workspace {request.workspace} is not a folder")
    return folder


def _with_leftovers(error: AgentError, names: Sequence[str]) -> AgentError:
    """Adds the files that a failed call changed; then only a human may decide on a retry."""
    if not names:
        return error
    message = f"{error}; files it had changed: {', '.join(names[:10])}"
    if isinstance(error, AgentTransient):
        # A transient error would be retried automatically, on top of half-finished edits.
        return with_usage(AgentError(message), getattr(error, "usage", None))
    error.args = (message,)
    return error


def _last_lines(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[-5:])[-600:]


def _format_version(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
