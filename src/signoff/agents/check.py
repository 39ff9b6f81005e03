"""A critic that computes instead of judging: a program or a Python function.

It costs nothing and always reports the same about the same text. Its findings count like
any critic's findings.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.base import Health
from signoff.agents.findings import READERS, Source, build_critique, crash_of
from signoff.agents.options import one_of
from signoff.agents.project_copy import copy_project, project_folder, settings_folder
from signoff.core.effects import AgentRequest, CommandResult, Reply
from signoff.core.severity import DEFAULT_SEVERITY, SEVERITIES, Severity
from signoff.documents.python_files import extend_import_path
from signoff.errors import AgentBadOutput, AgentBadRequest, AgentTimeout, CommandFailed, ConfigError
from signoff.runtime.effect_errors import FREE
from signoff.runtime.environment import command_environment
from signoff.runtime.orphans import call_mark
from signoff.runtime.paths import path_from
from signoff.runtime.ports import Call, Capabilities
from signoff.runtime.process import run_process
from signoff.runtime.scratch import scratch_folder

TIMEOUT_SECONDS = 120.0
FILE = "{file}"
"""The placeholder for the artifact's file in a command; without it, the text is piped in."""

CheckFunction = str | Callable[[str], Any]
"""A function of the artifact, as `module:function` or itself; it returns a list of findings."""

FILE_SCOPE, PROJECT_SCOPE = "file", "project"

_STDIN = frozenset({"-", "stdin", "<stdin>", "(stdin)", "/dev/stdin"})


class CheckAgent:
    """Answers with a critique that a program or a function computes."""

    capabilities = Capabilities(free=True, is_model=False, deterministic=True)

    def __init__(
        self,
        *,
        argv: Sequence[str] | None = None,
        function: CheckFunction | None = None,
        findings: str = "auto",
        constraint: str = "check",
        severity: str = DEFAULT_SEVERITY,
        broken_codes: Sequence[int] = (126, 127),
        suffix: str = ".md",
        scope: str = FILE_SCOPE,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """Takes a program (`argv`) or a function, and the format of its findings.

        With the scope `project`, the program runs once for all files, in a copy of the project.
        """
        if (argv is None) == (function is None) or isinstance(argv, str) or argv == []:
            raise ConfigError("a check needs either argv, a list, or function, a module:function")
        one_of("findings", findings, READERS)
        one_of("scope", scope, (FILE_SCOPE, PROJECT_SCOPE))
        self._whole = scope == PROJECT_SCOPE
        if self._whole and (argv is None or any(FILE in str(each) for each in argv)):
            raise ConfigError(f"a check of the whole project needs argv, without {FILE}")
        if self._whole:
            self.capabilities = replace(self.capabilities, whole_project=True)
        if severity.upper() not in Severity.__members__:
            raise ConfigError(f"severity must be one of: {SEVERITIES}, not {severity!r}")
        if isinstance(pass_env, str) or not isinstance(pass_env, Sequence):
            raise ConfigError("pass_env must be a list of names")
        self._argv = [str(argument) for argument in argv or ()]
        self._function = function
        self._read = READERS[findings]
        self._constraint = constraint
        self._severity = severity.upper()
        self._broken = frozenset(broken_codes)
        self._suffix = suffix
        self._env = {str(name): str(value) for name, value in (env or {}).items()}
        self._pass = tuple(pass_env)
        self._timeout = timeout

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Checks the request's `artifact` option, or its whole prompt."""
        artifact = str(request.options.get("artifact", request.prompt))
        constraint = str(request.options.get("constraint", self._constraint))
        source = Source(constraint, self._severity, artifact, _STDIN | _names_of(request))
        try:
            async with asyncio.timeout(self._timeout):
                if self._function is not None:
                    critique = await _call(self._function, artifact, source)
                else:
                    critique = await self._run(source, request, call)
        except TimeoutError:
            raise AgentTimeout(f"the check took longer than {self._timeout:g} seconds") from None
        call.emit(f"{critique['overall']}: {critique['summary']}\n")
        text = json.dumps(critique, ensure_ascii=False)
        return judge(ModelAnswer(text, finish="checked", usage=FREE), request.schema or {})

    async def health(self) -> Health:
        """Checks that the program or the function exists."""
        if self._function is not None:
            try:
                _load(self._function)
            except AgentBadRequest as error:
                return Health(False, str(error), "fix `function:` in the settings")
            return Health(True, f"function {_name(self._function)}")
        program = shutil.which(self._program)
        if program is None:
            return Health(False, f"{self._argv[0]} is not on PATH", f"install {self._argv[0]}")
        return Health(True, program)

    @property
    def _program(self) -> str:
        """The program; one that is named by a path is in the project."""
        name = self._argv[0]
        return str(Path(settings_folder(None), name)) if Path(name).name != name else name

    async def _run(self, source: Source, request: AgentRequest, call: Call) -> dict[str, Any]:
        started = path_from(call.folder)
        if self._whole:
            return await self._run_on_copy(source, request, request.workspace or started, call)
        folder = request.workspace or settings_folder(started)
        in_file = any(FILE in argument for argument in self._argv)
        with scratch_folder() as scratch:
            file = scratch / f"artifact{self._suffix}"
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
        try:
            return await run_process(
                argv,
                cwd=folder,
                stdin=stdin,
                env=command_environment(self._pass, self._env),
                mark=call_mark(call),
                started=call.started,
            )
        except CommandFailed as error:
            raise AgentBadRequest(f"the check cannot be started: {error}") from error

    def _critique(self, result: CommandResult, source: Source) -> dict[str, Any]:
        if result.code < 0 or result.code in self._broken:
            reason = (result.stderr or result.stdout).strip().splitlines()[-1:]
            raise AgentBadOutput(
                f"the check itself failed with exit code {result.code}: {''.join(reason):.300}"
            )
        # Of a program that executes the project, a crash may be what the change has broken.
        crashes = result.code != 0 and not self._whole
        if crashes and (why := crash_of(result.stdout, result.stderr, source)):
            name = " ".join(self._argv)
            raise AgentBadOutput(
                f"the check itself crashed ({name:.100}, exit code {result.code}): {why:.300}"
            )
        output = result.stdout if result.stdout.strip() else result.stderr
        return self._read(output, result.code, source)


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
