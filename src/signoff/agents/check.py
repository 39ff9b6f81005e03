"""A critic that computes instead of judging: a program or a Python function.

It costs nothing and always says the same about the same text. What it finds counts like
any critic's findings.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.base import Health
from signoff.agents.findings import (
    Source,
    build_critique,
    from_code,
    from_json,
    from_lines,
    from_output,
)
from signoff.core.effects import AgentRequest, Reply
from signoff.core.severity import SEVERITIES, Severity
from signoff.errors import (
    AgentBadOutput,
    AgentBadRequest,
    AgentTimeout,
    CommandFailed,
    ConfigError,
)
from signoff.runtime.effect_errors import FREE
from signoff.runtime.environment import command_environment
from signoff.runtime.orphans import call_mark
from signoff.runtime.paths import path_from
from signoff.runtime.ports import Call, Capabilities
from signoff.runtime.process import run_process
from signoff.runtime.scratch import scratch_folder

TIMEOUT_SECONDS = 120.0
FILE = "{file}"
"""Stands in a command for the file that holds the artifact; without it, the text is piped in."""

_READERS = {"auto": from_output, "json": from_json, "lines": from_lines, "exit": from_code}
_STDIN = frozenset({"-", "stdin", "<stdin>", "(stdin)", "/dev/stdin"})


class CheckAgent:
    """Answers with a critique that a program or a function computes."""

    capabilities = Capabilities(free=True, is_model=False, deterministic=True)

    def __init__(
        self,
        *,
        argv: Sequence[str] | None = None,
        function: str | None = None,
        findings: str = "auto",
        constraint: str = "check",
        severity: str = "HIGH",
        broken_codes: Sequence[int] = (126, 127),
        suffix: str = ".md",
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """Takes a program (`argv`) or a `module:function`, and how its findings are read."""
        if (argv is None) == (function is None) or isinstance(argv, str) or argv == []:
            raise ConfigError("a check has either argv, a list, or function, a module:function")
        if findings not in _READERS:
            raise ConfigError(f"findings is {findings!r}; it is one of: {', '.join(_READERS)}")
        if severity.upper() not in Severity.__members__:
            raise ConfigError(f"severity is {severity!r}; it is one of: {SEVERITIES}")
        if isinstance(pass_env, str) or not isinstance(pass_env, Sequence):
            raise ConfigError("pass_env is a list of names")
        self._argv = [str(each) for each in argv or ()]
        self._function = function
        self._read = _READERS[findings]
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
        source = Source(constraint, self._severity, artifact, _STDIN)
        try:
            async with asyncio.timeout(self._timeout):
                if self._function is not None:
                    found = await _called(self._function, artifact, source)
                else:
                    found = await self._run(source, request, call)
        except TimeoutError:
            raise AgentTimeout(f"the check took longer than {self._timeout:g} seconds") from None
        call.emit(f"{found['overall']}: {found['summary']}\n")
        text = json.dumps(found, ensure_ascii=False)
        return judge(ModelAnswer(text, finish="checked", usage=FREE), request.schema or {})

    async def health(self) -> Health:
        """Looks whether the program or the function is there."""
        import shutil

        if self._function is not None:
            try:
                _load(self._function)
            except AgentBadRequest as error:
                return Health(False, str(error), "mend `function:` in the settings")
            return Health(True, f"function {self._function}")
        found = shutil.which(self._argv[0])
        if found is None:
            return Health(False, f"{self._argv[0]} is not on PATH", f"install {self._argv[0]}")
        return Health(True, found)

    async def _run(self, source: Source, request: AgentRequest, call: Call) -> dict[str, Any]:
        with self._given(source) as (argv, stdin, source):
            try:
                result = await run_process(
                    argv,
                    cwd=request.workspace or path_from(call.folder),
                    stdin=stdin,
                    env=command_environment(self._pass, self._env),
                    mark=call_mark(call),
                    started=call.started,
                )
            except CommandFailed as error:
                raise AgentBadRequest(f"the check cannot be run: {error}") from error
        if result.code < 0 or result.code in self._broken:
            said = (result.stderr or result.stdout).strip().splitlines()[-1:]
            raise AgentBadOutput(
                f"the check itself failed with exit code {result.code}: {''.join(said):.300}"
            )
        output = result.stdout if result.stdout.strip() else result.stderr
        return self._read(output, result.code, source)

    @contextmanager
    def _given(self, source: Source) -> Iterator[tuple[list[str], str | None, Source]]:
        """Hands the artifact over: in a file where the command names one, else by pipe."""
        if not any(FILE in each for each in self._argv):
            yield self._argv, source.artifact, source
            return
        with scratch_folder() as folder:
            file = folder / f"artifact{self._suffix}"
            file.write_text(source.artifact, encoding="utf-8", errors="replace")
            names = frozenset({str(file), file.name, str(file.resolve())})
            known = Source(source.constraint, source.severity, source.artifact, names)
            yield [each.replace(FILE, str(file)) for each in self._argv], None, known


async def _called(place: str, artifact: str, source: Source) -> dict[str, Any]:
    function = _load(place)
    try:
        found = await asyncio.to_thread(function, artifact)
        if inspect.isawaitable(found):
            found = await found
    except TimeoutError:
        raise
    except Exception as error:
        # A check that breaks has not passed anything.
        raise AgentBadOutput(f"{place} raised {type(error).__name__}: {error}") from error
    if found is None or found is True:
        return build_critique([], source)
    if found is False:
        return build_critique([f"{place} says no"], source)
    if isinstance(found, str | Mapping) or not hasattr(found, "__iter__"):
        raise AgentBadOutput(
            f"{place} returned {type(found).__name__}; it returns a list of findings"
        )
    return build_critique(found, source)


def _load(place: str) -> Callable[[str], Any]:
    module, _, name = place.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise AgentBadRequest(f"the check {place!r} cannot be loaded: {error}") from error
    if not callable(function):
        raise AgentBadRequest(f"the check {place!r} is no function")
    return function  # type: ignore[no-any-return]  # the user's own
