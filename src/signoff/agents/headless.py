"""What the agents that are programs share: one call from request to reply.

A kind says how its program is called and how its JSON is read; the rest is here. Success
is judged from the JSON and from what was denied, never from the exit code alone. A program
whose output is not its vendor's JSON at all, and that exits with 0, is taken at its word.

In edit mode the program may write to the workspace and nowhere else, by its vendor's own
rules, which are never switched off. What changed there is recorded as diffs. A change
elsewhere in the project fails the call with `AgentRefused` and names the files, which are
left as they are; `outside: note` in the settings records it and lets the call stand, for
people who work in the same project while agents do. A call on a working copy of its own
always stands by default: what it gives back does not depend on anything else.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

from signoff._extras import install_command
from signoff.agents import workspace as ws
from signoff.agents.answer import MOST_CHARACTERS, ModelAnswer, judge, whole_characters
from signoff.agents.base import Health
from signoff.agents.error_patterns import MISUSED, complaint
from signoff.agents.program import Job, find, run, tell, version_in
from signoff.agents.reading import OutputReader, ProgramReply
from signoff.agents.transcript import Lines, Transcript
from signoff.core.effects import AgentRequest, CommandResult, Reply
from signoff.errors import (
    AgentAuth,
    AgentBadOutput,
    AgentBadRequest,
    AgentError,
    AgentRefused,
    AgentTransient,
    ConfigError,
)
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.environment import Secrets, program_environment
from signoff.runtime.ports import Call, Capabilities
from signoff.runtime.scratch import scratch_folder

TIMEOUT_SECONDS = 1800.0
"""A coding agent may well work for a while; longer than this it hangs."""

RETRIES = 2
"""How often a vendor's program may try again by itself; the engine's own patience comes after."""


class HeadlessAgent(ABC):
    """A program on this machine that answers prompts; subclasses know one program each."""

    name: str
    capabilities: Capabilities
    login: ClassVar[str]
    """What to do when the program is not logged in."""
    install: ClassVar[str]
    """What to do when it is not there, or too old."""
    extra: ClassVar[str] = ""
    """The extra that brings it along; empty when none does."""
    oldest: ClassVar[tuple[int, ...]]
    """The first version whose output is understood."""
    keys: ClassVar[tuple[str, ...]]
    """Variables that hold the vendor's keys."""
    settings: ClassVar[tuple[str, ...]]
    """Further variables the program is known by."""
    address: ClassVar[str] = ""
    """The variable that points the program at another server."""
    statuses: ClassVar[Mapping[int, int]] = {}
    """The HTTP status an exit code stands for, where the program does that."""
    fine: Collection[int] = (0,)
    """Exit codes of a success."""
    bundled: ClassVar[Callable[[], Path | None]] = staticmethod(lambda: None)
    """Where an installed package keeps the program, if one does."""

    def __init__(
        self,
        *,
        path: str | None = None,
        model: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        args: Sequence[str] = (),
        base_url: str | None = None,
        key_env: str | None = None,
        vendor_retries: int = RETRIES,
        outside: Literal["refuse", "note"] | None = None,
    ) -> None:
        """Takes the options of the settings file; nothing is looked for before the first use."""
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
            raise ConfigError(f"{self.name}: timeout is a number of seconds above 0")
        if outside not in (None, "refuse", "note"):
            raise ConfigError(f"{self.name}: outside is refuse or note")
        if not isinstance(args, list | tuple) or not isinstance(pass_env, list | tuple):
            raise ConfigError(f"{self.name}: args and pass_env are lists")
        if env is not None and not isinstance(env, Mapping):
            raise ConfigError(f"{self.name}: env holds variables by name")
        if isinstance(vendor_retries, bool) or not isinstance(vendor_retries, int):
            raise ConfigError(f"{self.name}: vendor_retries is a whole number")
        self._path = path
        self._model = model
        self._timeout = float(timeout)
        self._env = {str(key): str(value) for key, value in (env or {}).items()}
        self._pass = tuple(pass_env)
        self._args = tuple(str(each) for each in args)
        self._base_url = base_url
        self._key = key_env
        self._retries = vendor_retries
        self._outside = outside

    @abstractmethod
    def arguments(self, request: AgentRequest, scratch: Path) -> list[str]:
        """Returns what follows the program's name for one request."""

    @abstractmethod
    def reader(self) -> OutputReader:
        """Returns who understands the program's output."""

    def prompt(self, request: AgentRequest) -> str:
        """Returns what goes to standard input."""
        return "\n\n".join(part for part in (request.system, request.prompt) if part)

    def variables(self) -> dict[str, str]:
        """Returns the variables this program is given beyond the user's own."""
        return {}

    @abstractmethod
    async def logged_in(self, program: str, environment: Mapping[str, str]) -> bool | None:
        """Tells whether the program has a login, without spending anything; None if unknown."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Runs the program once and returns its answer."""
        request = replace(request, model=request.model or self._model)
        for option in request.options:
            call.emit(f"{self.name} has no option {option!r}; it is left out\n")
        with ExitStack() as stack:
            scratch = stack.enter_context(scratch_folder())
            job, secrets = self._job(request, scratch)
            if not request.edit:
                return await self._attempt(job, request, call, secrets)
            stack.enter_context(ws.editing(Path(job.cwd)))
            return await self._edit(job, request, call, secrets)

    async def _edit(self, job: Job, request: AgentRequest, call: Call, secrets: Secrets) -> Reply:
        before = await asyncio.to_thread(ws.take, Path(job.cwd))
        try:
            reply = await self._attempt(job, request, call, secrets)
        except AgentError as error:
            if request.copied:
                # What it left goes with the copy; another try begins with the texts as they were.
                raise
            left = await asyncio.to_thread(ws.compare, before)
            told = _with_leftovers(error, [*left.inside, *left.outside])
            raise told from (error.__cause__ if told is error else error)
        changes = await asyncio.to_thread(ws.compare, before)
        return self._with_changes(reply, changes, secrets, copied=request.copied)

    async def health(self) -> Health:
        """Looks for the program, its version and its login."""
        try:
            program = find(self.name, self._path, type(self).bundled, self._installing)
            environment = self._environment(self.variables())
        except AgentError as error:
            return Health(False, str(error), self._remedy(error))
        code, words = await tell([program, "--version"], environment)
        version = version_in(words)
        if code != 0 and version is None:
            detail = f"{program} does not tell its version: {words:.200}"
            return Health(False, detail, self._installing)
        if version is not None and version < self.oldest:
            return Health(False, f"{self.name} {_dotted(version)} is too old", self._installing)
        if await self.logged_in(program, environment) is False:
            return Health(False, f"{self.name} is not logged in", self.login)
        stated = _dotted(version) if version else "of unknown version"
        return Health(True, f"{self.name} {stated} at {program}")

    @property
    def _installing(self) -> str:
        if not self.extra:
            return self.install
        return f"{install_command(self.extra)}, or {self.install}"

    def _remedy(self, error: AgentError) -> str:
        return self.login if isinstance(error, AgentAuth) else self._installing

    def _job(self, request: AgentRequest, scratch: Path) -> tuple[Job, Secrets]:
        program = find(self.name, self._path, type(self).bundled, self._installing)
        place = _place(request, scratch)
        environment = self._environment({"TMPDIR": str(scratch), **self.variables()})
        argv = [program, *self.arguments(request, scratch)]
        job = Job(
            argv, str(place), environment, self._timeout, whole_characters(self.prompt(request))
        )
        return job, Secrets.of(environment)

    def _environment(self, fixed: Mapping[str, str]) -> dict[str, str]:
        """Gives the vendor's keys along, but not to a server the settings name.

        Such a server gets a key only when `key_env` names the variable that holds it.
        """
        elsewhere = self._base_url is not None or self.address in self._env
        if self._base_url is not None and self.address:
            fixed = {**fixed, self.address: self._base_url}
        names = {*self.settings, *self._pass, *(() if elsewhere or self._key else self.keys)}
        chosen = {}
        if self._key is not None:
            key = os.environ.get(self._key, "").strip()
            if not key:
                raise AgentAuth(
                    f"{self.name}: the variable {self._key} holds no key; set it, or name another "
                    "with key_env: in the settings"
                )
            chosen = {self.keys[0]: key}
        return program_environment(names, {**fixed, **chosen, **self._env})

    async def _attempt(
        self, job: Job, request: AgentRequest, call: Call, secrets: Secrets
    ) -> Reply:
        reader = self.reader()

        def shown(text: str | None) -> None:
            if text:
                call.emit(secrets.hide(text))

        output = Transcript(lambda data: shown(reader.event(data)), lambda line: shown(f"{line}\n"))
        errors = Lines(reader.complaint)
        try:
            ran = await run(job, call, output.add, errors.add)
            output.close()
            said = reader.said() or await self._plain(job, output, ran)
            if said.usage is not None and said.usage.model is None:
                # Prices go by model, and most programs do not repeat the one they were given.
                said = replace(said, usage=replace(said.usage, model=request.model))
            return await self._judged(job, request, said, output, ran, secrets)
        except AgentError as error:
            raise _hidden(error, secrets) from error.__cause__

    async def _judged(
        self,
        job: Job,
        request: AgentRequest,
        said: ProgramReply,
        output: Transcript,
        ran: CommandResult,
        secrets: Secrets,
    ) -> Reply:
        if said.fault is not None:
            raise with_usage(said.fault, said.usage)
        if said.denied:
            raise with_usage(AgentRefused(self._denial(request, said.denied)), said.usage)
        if ran.code not in self.fine:
            raise with_usage(await self._failed(job, output, ran), said.usage)
        if not said.complete:
            raise with_usage(AgentTransient(f"{self.name} broke off before its result"), said.usage)
        if output.damaged:
            raise with_usage(
                AgentBadOutput(f"{self.name} printed bytes that are not UTF-8"), said.usage
            )
        if len(said.text) > MOST_CHARACTERS:
            raise with_usage(
                AgentBadOutput(f"the answer is longer than {MOST_CHARACTERS:,} characters"),
                said.usage,
            )
        # Hidden before it is parsed, or the value would still hold what the text does not.
        text = secrets.hide(whole_characters(said.text))
        return judge(
            ModelAnswer(
                text,
                said.finish,
                said.cut_off,
                said.declined,
                said.usage,
                said.session,
                may_be_silent=request.edit,
            ),
            request.schema,
        )

    async def _plain(self, job: Job, output: Transcript, ran: CommandResult) -> ProgramReply:
        """Takes a program at its word whose output is not its vendor's JSON at all."""
        if ran.code not in self.fine:
            return ProgramReply(fault=await self._failed(job, output, ran))
        if output.half:
            fault = AgentBadOutput(f"{self.name} printed half a JSON document")
            return ProgramReply(fault=fault)
        return ProgramReply(text=output.text.strip("\n"))

    async def _failed(self, job: Job, output: Transcript, ran: CommandResult) -> AgentError:
        words = _last_words(ran.stderr) or _last_words(output.text)
        if ran.code < 0:
            return AgentTransient(f"{self.name} was ended by signal {-ran.code}: {words:.200}")
        if MISUSED.search(ran.stderr):
            _, version = await tell([job.argv[0], "--version"], job.environment)
            return AgentBadRequest(
                f"{self.name} was called in a way it does not know: {words:.200}; it says it is "
                f"{version:.60}, and {_dotted(self.oldest)} or newer is needed: {self._installing}"
            )
        who = f"{self.name} (exit code {ran.code})"
        return complaint(who, words, remedy=self.login, status=self.statuses.get(ran.code))

    def _denial(self, request: AgentRequest, denied: Sequence[str]) -> str:
        listed = "; ".join(denied[:5])
        remedy = (
            "only its workspace is writable; widen the workspace, or change the prompt"
            if request.edit
            else "it was asked for an answer only; ask with edit=True and a workspace"
        )
        return f"{self.name} was denied what it tried to do: {listed} ({remedy})"

    def _with_changes(
        self, reply: Reply, changes: ws.Changes, secrets: Secrets, *, copied: bool
    ) -> Reply:
        files = changes.inside
        for path, diff in files.items():
            if variable := secrets.name_in(diff):
                problem = f"the value of {variable} is in {path}, which {self.name} changed"
                raise with_usage(AgentRefused(f"{problem}; take it out"), reply.usage)
        if not changes.outside:
            return replace(reply, files=files)
        listed = ", ".join(changes.outside[:5])
        more = f" and {len(changes.outside) - 5} more" if len(changes.outside) > 5 else ""
        # What is read back from a copy is whole, whatever else changed meanwhile, and by whom.
        if (self._outside or ("note" if copied else "refuse")) == "refuse":
            raise with_usage(
                AgentRefused(
                    f"files outside the workspace changed while {self.name} worked: {listed}"
                    f"{more}; look at them and undo what you do not want (outside: note in the "
                    "settings lets such calls stand)"
                ),
                reply.usage,
            )
        noted = dict.fromkeys(changes.outside, "changed outside the workspace\n")
        return replace(reply, files={**files, **noted})


def _place(request: AgentRequest, scratch: Path) -> Path:
    """Returns where the program works: in its workspace, or in an empty folder."""
    if request.workspace is None:
        if request.edit:
            raise AgentBadRequest("editing needs a workspace: pass workspace= with edit=True")
        empty = scratch / "empty"
        empty.mkdir()
        return empty
    place = Path(request.workspace).expanduser().resolve()
    if not place.is_dir():
        raise AgentBadRequest(f"the workspace {request.workspace} is not a folder")
    return place


def _hidden(error: AgentError, secrets: Secrets) -> AgentError:
    error.args = tuple(secrets.hide(str(each)) for each in error.args)
    return error


def _with_leftovers(error: AgentError, names: Sequence[str]) -> AgentError:
    """Names the files a failed call had changed; on top of those, nobody tries again by himself."""
    if not names:
        return error
    words = f"{error}; files it had changed: {', '.join(names[:10])}"
    if isinstance(error, AgentTransient):
        return with_usage(AgentError(words), getattr(error, "usage", None))
    error.args = (words,)
    return error


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[-5:])[-600:]


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
