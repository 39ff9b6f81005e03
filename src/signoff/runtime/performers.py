"""Performs effects: asks agents, runs programs, writes and reads files.

A performer turns an effect's payload into a JSON reply. It knows nothing of journals
and replays, so the same performers can serve a worker somewhere else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from signoff.core import effects as fx
from signoff.core import errors
from signoff.core.digest import text_digest
from signoff.core.errors import AgentBadOutput, UnsafePath
from signoff.core.requests import Answer
from signoff.core.spend import Usage
from signoff.documents import regular_files
from signoff.runtime import ports
from signoff.runtime.effect_errors import usage_of, with_usage
from signoff.runtime.environment import HidingStream, Secrets, command_environment
from signoff.runtime.error_text import describe_error
from signoff.runtime.owner import scratch_folder
from signoff.runtime.paths import check_path, path_from, read_text, safe_path
from signoff.runtime.process import call_mark, run_process
from signoff.runtime.project_files import conflict_text, replace_files

# Lets an agent work on a copy: texts are written to a new folder and read back from it.
#
# Nothing else is touched, so a call that was lost is simply repeated. The folder is a temporary one
# outside the run's own, and the agent may do anything to it: a file it deleted is left out of the
# reply, and one it replaced by a link or a pipe is refused.


LARGEST_BYTES = 64_000_000
"""A file that grew beyond this is an error, not an edit."""


async def ask_on_copy(agent: ports.Agent, request: fx.AgentRequest, call: ports.Call) -> fx.Reply:
    """Asks an agent that works on copies of some texts, and returns them with its reply."""
    with scratch_folder() as folder:
        _lay_out(folder, request.files)
        reply = await agent.ask(
            replace(request, files={}, workspace=str(folder), copied=True), call
        )
        try:
            contents = dict(_collect(folder, request.files)) if request.edit else None
        except AgentBadOutput as error:
            with_usage(error, reply.usage)
            raise
    return replace(reply, contents=contents)


def _lay_out(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = safe_path(folder, name)
        with regular_files.translate_write_errors(path):
            regular_files.make_private_folders(path.parent)
            with os.fdopen(regular_files.create_private(path), "wb") as file:
                file.write(text.encode("utf-8", "surrogatepass"))


def _collect(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        data = _read(folder, name)
        if data is None:
            continue
        if len(data) > LARGEST_BYTES:
            raise AgentBadOutput(f"the agent left {name} larger than {LARGEST_BYTES:,} bytes")
        try:
            yield name, data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise AgentBadOutput(f"the agent left {name} as something that is not text") from error


def _read(folder: Path, name: str) -> bytes | None:
    """Returns the content of a file; None for one that was deleted or became a folder.

    Raises `AgentBadOutput` for anything that is not a regular file in the very folder that was
    created: through a link, any file of the machine would end up in the artifact.
    """
    try:
        # It had no link in it when it was created, so it has been replaced, or a folder above it.
        if folder.resolve() != folder:
            raise AgentBadOutput("the agent replaced the folder of its working copy")
        return regular_files.read_regular(safe_path(folder, name), LARGEST_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except UnsafePath as error:
        raise AgentBadOutput(f"the agent replaced {name} or its folder by a link") from error
    except OSError as error:
        why = error.strerror or error
        raise AgentBadOutput(f"the agent left {name} unreadable: {why}") from error


PerformedStep = tuple[dict[str, Any], Usage | None]

_REPLY_TYPES: dict[fx.EffectKind, Callable[..., Any]] = {
    fx.EffectKind.COMMAND: fx.CommandResult,
    fx.EffectKind.WRITE: fx.WrittenFile,
    fx.EffectKind.READ: lambda **file: fx.FileRead(**file) if file else None,
    fx.EffectKind.WAIT: Answer,
}


def _text_answer(effect: fx.Effect, error: errors.SignoffError) -> fx.Reply:
    """Returns an answer that ignores signoff's own schema as text; raises any other error.

    The code that declares the schema reads text as well, so such an answer is not a failure.
    """
    if not (effect.own_schema and isinstance(error, errors.AgentBadOutput) and error.answer):
        raise error
    return fx.Reply(error.answer, usage=usage_of(error), agent=error.agent or None)


@dataclass(frozen=True)
class Performers:
    """Performs effects in this process, each kind with its own method."""

    agents: Mapping[str, ports.Agent]
    roles: Mapping[str, str]
    """The agent for each role."""
    files: ports.FilePort | None
    """Where a run's files are; None if this engine has none."""
    pass_env: Sequence[str]
    """Environment variables that every command gets in addition to the ordinary ones."""
    secrets: Secrets
    """Values that are removed from replies, output and errors."""

    async def perform(self, effect: fx.Effect, call: ports.Call) -> PerformedStep:
        """Performs an effect; raises `AgentError` or `CommandFailed`. Known secrets are hidden."""
        stream = HidingStream(self.secrets, call.emit)
        try:
            performer = _PERFORMERS[effect.kind]
            reply, usage = await performer(self, effect, call._replace(emit=stream.add))
        except errors.SignoffError as error:
            error.args = tuple(self.secrets.hide_in(each) for each in error.args)
            raise
        finally:
            stream.close()
        # Most replies contain no secret, and then they need no copy.
        if not self.secrets.name_in(reply):
            return reply, usage
        self._refuse_secret_files(reply, usage)
        return self.secrets.hide_in(reply), usage

    def _refuse_secret_files(self, reply: dict[str, Any], usage: Usage | None) -> None:
        """Raises for a secret in a file: hidden, the file would not be what the agent made."""
        name, variable = self._secret_in(reply.get("contents"))
        if variable:
            problem = f"the agent put the value of {variable} into {name}; leave it out"
            raise with_usage(errors.AgentBadOutput(problem), usage)
        name, variable = self._secret_in(reply.get("files"))
        if variable:
            # Its workspace is the user's own, and changed already.
            problem = f"the value of {variable} is in {name}, which the agent changed"
            raise with_usage(errors.AgentRefused(f"{problem}; take it out"), usage)

    def _secret_in(self, values: Mapping[str, Any] | None) -> tuple[str, str]:
        """Returns the first name whose value contains a secret, and the secret's variable."""
        for name, value in (values or {}).items():
            if variable := self.secrets.name_in(value):
                return name, variable
        return "", ""

    def check(self, effect: fx.Effect) -> None:
        """Raises before anything is recorded when an effect can never be performed here."""
        self._check_secrets(effect)
        if effect.kind is fx.EffectKind.ASK:
            self.agent(effect.payload["agent"])
            for name in effect.payload.get("files", ()):
                check_path(name)
        if effect.kind in (fx.EffectKind.WRITE, fx.EffectKind.READ) and self.files is None:
            verb = effect.kind.value
            raise errors.UsageError(f"this engine cannot {verb} files; create it with files=...")

    def _check_secrets(self, effect: fx.Effect) -> None:
        """Refuses to store a request with a secret in it, or to send one to an agent."""
        if not self.secrets.name_in(effect.payload):
            return
        payload = {**effect.payload.get("files", {}), **effect.payload}
        if effect.kind is fx.EffectKind.WRITE:
            payload = {payload["path"]: payload["text"]}
        where, variable = self._secret_in(payload)
        hint = "; pass it on with pass_env=" if effect.kind is fx.EffectKind.COMMAND else ""
        raise errors.UsageError(
            f"{effect.kind.value} {effect.key!r}: {where or effect.key} contains the value of "
            f"{variable or 'a variable'}, which would be stored; take it out{hint}"
        )

    def agent_for(self, name: str) -> str:
        """Returns the name of an agent, given its name or the name of a role."""
        return name if name in self.agents else self.roles.get(name, name)

    def has_agent(self, name: str) -> bool:
        """Tells whether a name is an agent's, or a role that has an agent."""
        return self.agent_for(name) in self.agents

    def capabilities(self, name: str) -> ports.Capabilities:
        """Returns what an agent declares, by its name or a role's; the defaults if it is none."""
        return ports.capabilities_of(self.agents.get(self.agent_for(name)))

    def answered_by_human(self, name: str) -> bool:
        """Tells whether an agent's answers come through the inbox."""
        return ports.capabilities_of(self.agent(name)).answered_by_human

    async def reports_price(self, agent: str, model: str | None) -> bool:
        """Tells whether a call's cost will be known; without a declaration, it is assumed."""
        try:
            declared = await ports.capabilities_for(self.agents.get(self.agent_for(agent)), model)
        except errors.AgentError:
            # The agent is not available, and the call itself fails with a better message.
            return True
        return declared.reports_price is not False

    def agent(self, name: str) -> ports.Agent:
        """Returns an agent by its name or a role's; raises `UnknownName`."""
        agent = self.agents.get(self.agent_for(name))
        if agent is None:
            raise errors.UnknownName("agent", name, [*self.agents, *self.roles])
        return agent

    async def _ask(self, effect: fx.Effect, call: ports.Call) -> PerformedStep:
        payload = dict(effect.payload)
        name = payload.pop("agent")
        if payload.get("workspace") is not None:
            payload["workspace"] = path_from(call.folder, payload["workspace"])
        agent = self.agent(name)
        if self.files is not None:
            call = call._replace(directory=str(self.files.folder(call.run)))
        try:
            can = ports.capabilities_of(agent)
            asked = fx.AgentRequest(**payload, stated=effect.stated)
            request = asked.held(json_schema=can.json_schema)
            if effect.timeout is None:
                reply = await self._reply(agent, request, call)
            else:
                reply = await self._reply_in_time(agent, request, call, effect.timeout)
        except errors.SignoffError as error:
            reply = _text_answer(effect, error)
        except Exception as error:
            # A bug of the agent, which must not look like an error of the handler.
            raise errors.AgentError(f"agent {name!r} failed: {describe_error(error)}") from error
        if not isinstance(reply, fx.Reply):
            kind = type(reply).__name__
            raise errors.AgentError(
                f"agent {name!r} answered with a {kind}; its ask() returns a Reply"
            )
        if reply.usage is not None:
            # An impossible amount, such as NaN, would disable every limit; the answer is paid for.
            reply = replace(reply, usage=reply.usage.cleaned())
        return reply.to_json(), reply.usage

    def _reply(
        self, agent: ports.Agent, request: fx.AgentRequest, call: ports.Call
    ) -> Awaitable[fx.Reply]:
        if not request.files:
            return agent.ask(request, call)
        return ask_on_copy(agent, request, call)

    async def _reply_in_time(
        self, agent: ports.Agent, request: fx.AgentRequest, call: ports.Call, seconds: float
    ) -> fx.Reply:
        # Agents may time out by themselves, and only our own clock means `AgentTimeout`.
        clock = asyncio.timeout(seconds)
        call = call._replace(slot=partial(_untimed, call.slot, clock, seconds))
        try:
            async with clock:
                return await self._reply(agent, request, call)
        except TimeoutError as error:
            if not clock.expired():
                raise errors.AgentTransient(f"the agent timed out by itself: {error}") from error
            raise errors.AgentTimeout(f"no answer within {seconds:g} seconds") from None

    async def _command(self, effect: fx.Effect, call: ports.Call) -> PerformedStep:
        payload = effect.payload
        pass_env = [*self.pass_env, *payload.get("pass_env", ())]
        result = await run_process(
            payload["argv"],
            cwd=path_from(call.folder, payload.get("cwd")),
            stdin=payload.get("stdin"),
            env=command_environment(pass_env, payload.get("env", {})),
            mark=call_mark(call),
            seconds=effect.timeout,
            started=call.started,
            emit=call.emit,
        )
        return asdict(result), None

    async def _write(self, effect: fx.Effect, call: ports.Call) -> PerformedStep:
        path, text = effect.payload["path"], effect.payload["text"]
        if self.files is not None:
            self.files.write(call.run, path, text)
        return {"path": path, "digest": text_digest(text)}, None

    async def _replace(self, effect: fx.Effect, _call: ports.Call) -> PerformedStep:
        payload = effect.payload
        reply = replace_files(Path(payload["root"]), payload["files"], payload["expected"])
        if reply["conflicts"] and payload.get("strict"):
            # A failed effect is performed again when its run is resumed; a reply never is.
            raise errors.FilesChanged(conflict_text(reply["conflicts"]))
        return dict(reply), None

    async def _read(self, effect: fx.Effect, call: ports.Call) -> PerformedStep:
        path = effect.payload["path"]
        file = read_text(self.files, self.secrets, call.run, path) if self.files else None
        if file is None and not effect.payload.get("missing_ok"):
            raise errors.UnreadableFile(f"{path} does not exist in the directory of the run")
        return asdict(file) if file is not None else {}, None


_PERFORMERS = {
    fx.EffectKind.ASK: Performers._ask,
    fx.EffectKind.COMMAND: Performers._command,
    fx.EffectKind.WRITE: Performers._write,
    fx.EffectKind.READ: Performers._read,
    fx.EffectKind.REPLACE: Performers._replace,
}


@asynccontextmanager
async def _untimed(
    slot: ports.Slot, clock: asyncio.Timeout, seconds: float, agent: str
) -> AsyncIterator[None]:
    """Holds a slot of another agent; waiting for it does not count against the timeout."""
    clock.reschedule(None)
    async with slot(agent):
        clock.reschedule(asyncio.get_running_loop().time() + seconds)
        yield


def reply_of(kind: fx.EffectKind, data: Any) -> Any:
    """Returns a stored reply as the handler gets it."""
    if kind is fx.EffectKind.ASK:
        return fx.Reply.from_json(data)
    reply_type = _REPLY_TYPES.get(kind)
    return reply_type(**data) if reply_type is not None else data
