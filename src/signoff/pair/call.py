"""Runs pairs from Python: `pair`, and the calls for slogans built on it.

A pair is a run of one workflow, so there is no loop here: the engine drives the turns, records
each call, and resumes after a crash.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeAlias

from signoff.agents.base import KnownAgent
from signoff.agents.check import CheckAgent
from signoff.agents.ollama import OllamaModel
from signoff.api import LimitsLike, resume_async, run_async
from signoff.app.agents import build_agents
from signoff.app.home import expected_home
from signoff.app.notations import compile_context
from signoff.app.settings import Settings, load_settings
from signoff.errors import ConfigError, Problem
from signoff.notation import CompileContext
from signoff.pair.agents import check_pair
from signoff.pair.errors import (
    AgentError,
    ApprovalTimeoutError,
    ConfigurationError,
    WorkflowError,
)
from signoff.pair.presets import OLLAMA, PHRASE_VERDICT
from signoff.pair.session import AgentRole, CompletionReason, IterationSession, session_of
from signoff.pair.steps import Approve
from signoff.pair.workflow import build
from signoff.runtime.amounts import count
from signoff.runtime.home_folder import FOLDER, VARIABLE
from signoff.runtime.ports import Agent, Clock, Observer, SystemClock, capabilities_of
from signoff.runtime.store_port import Store

AgentLike: TypeAlias = str | Agent | Callable[[str], Any]
"""An agent's name, an agent, or a function of the text that returns what is wrong with it."""
ReviewerLike: TypeAlias = AgentLike | tuple[AgentLike, str]
"""A reviewer, perhaps with its specialty."""

STRICT = "strict"
"""The way of approving in which a reply is the phrase and nothing else."""

_PERMANENT = frozenset({"AgentAuth", "AgentBadRequest", "AgentRefused", "ModelMissing"})
"""Errors of calls that another try does not help."""


async def pair(
    task: str,
    *,
    preset: str = "text",
    writer: AgentLike | None = None,
    reviewers: Sequence[ReviewerLike] | None = None,
    approve: str | Approve | None = None,
    require_approval: bool = False,
    name: str | None = None,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    observers: Sequence[Observer] = (),
    **values: Any,
) -> IterationSession:
    """Lets a writer and reviewers work on a task until all reviewers pass it.

    `writer` and `reviewers` are agents by name or object; a reviewer may come with its specialty
    (`("claude", "rhythm")`), or be a function that returns what is wrong with the text. `approve`
    is how a reply decides: "phrase", "strict", "structured" or a function of the reply.

    `values` are any of: criteria, checks, verdict, strict, max_turns (1 to 10), candidates, keep
    ("last" or "best"), similarity, model_name, temperature, max_tokens, base_url, request_timeout.
    Those that are missing come from the environment, the settings and the built-in values.

    Raises `ConfigurationError` or `AgentError` before anything is started. An error in a turn ends
    the session with the turns before it. With `require_approval`, a session that ends without an
    approval raises `ApprovalTimeoutError`.
    """
    seats = _Seats(dict(agents or {}))
    params = {"task": task, **seats.params(writer, reviewers), **_approval(approve), **values}
    call = _Call(preset, seats, store, home, approve)
    await call.check(params)
    result = await run_async(
        call.workflow,
        params,
        name=name,
        store=store,
        home=home,
        agents=call.agents,
        limits=limits,
        observers=observers,
    )
    session = session_of(result)
    if require_approval and not session.succeeded:
        turns = count(session.turn_count, "turn")
        raise ApprovalTimeoutError(f"did not pass in {turns}", session=session)
    return session


async def run_slogan_generation(
    user_input: str, model_name: str | None = None, max_turns: int | None = None, **options: Any
) -> IterationSession:
    """Writes a slogan until its reviewer approves it; `options` are those of `pair`."""
    return await pair(
        user_input, preset="slogan", model_name=model_name, max_turns=max_turns, **options
    )


async def run_slogan_generation_with_retry(
    user_input: str, max_retries: int = 3, *, clock: Clock | None = None, **options: Any
) -> IterationSession:
    """Writes a slogan, and resumes a session that ended with an error.

    It waits 2, 4, 8 ... seconds between attempts, and pays for no finished call again. After the
    last one it raises `WorkflowError` with the session. Configuration errors are not retried.
    """
    if max_retries < 1:
        raise ConfigurationError([Problem("max_retries", f"is {max_retries}", "from 1")])
    clock = clock or SystemClock()
    last = AgentError()
    for attempt in range(1, max_retries + 1):
        try:
            return await _attempt(user_input, last.session, options)
        except AgentError as error:
            if not error.is_transient:
                raise
            last = error
        if attempt < max_retries:
            await clock.sleep(2.0**attempt)
    attempts = count(max_retries, "attempt")
    raise WorkflowError(f"Failed after {attempts}: {last}", session=last.session) from last


async def _attempt(
    user_input: str, session: IterationSession | None, options: Mapping[str, Any]
) -> IterationSession:
    """Starts a session, or resumes the one that failed; raises the error that ended it."""
    if session is None:
        session = await run_slogan_generation(user_input, **options)
    else:
        session = await resume_pair(session.run, preset="slogan", **options)
    if session.completion_reason is CompletionReason.ERROR:
        error = AgentError(session.error or "", session=session)
        error.is_transient = session.error_kind not in _PERMANENT
        raise error
    return session


async def resume_pair(
    run: str,
    *,
    preset: str = "text",
    writer: AgentLike | None = None,
    reviewers: Sequence[ReviewerLike] | None = None,
    approve: str | Approve | None = None,
    store: Store | None = None,
    home: str | Path | None = None,
    agents: Mapping[str, Agent] | None = None,
    limits: LimitsLike | None = None,
    observers: Sequence[Observer] = (),
    **_values: Any,
) -> IterationSession:
    """Resumes the run of a pair; what it was started with is stored with it.

    Only agents that are objects, and a function for `approve`, have to be passed again.
    """
    seats = _Seats(dict(agents or {}))
    seats.params(writer, reviewers)
    call = _Call(preset, seats, store, home, approve)
    result = await resume_async(
        run,
        call.workflow,
        store=store,
        home=home,
        agents=call.agents,
        limits=limits,
        observers=observers,
    )
    return session_of(result)


class _Call:
    """One call of a pair: its workflow, and the agents that are objects."""

    def __init__(
        self,
        preset: str,
        seats: _Seats,
        store: Store | None,
        home: str | Path | None,
        approve: str | Approve | None,
    ) -> None:
        self.agents = seats.agents
        self._preset = preset
        self._configured: Mapping[str, Agent] = {}
        if store is None:
            settings, self._context = _project(seats.agents, home)
            self._configured = build_agents(settings.agents)
        else:
            # With a store of its own, a program reads and writes nothing else.
            self.agents = {OLLAMA: OllamaModel(), **seats.agents}
            self._context = _store_context(self.agents)
        workflow = build(preset, self._context, approve if callable(approve) else None)
        self.workflow = workflow.with_source(given=self._context.stored)

    async def check(self, params: Mapping[str, Any]) -> None:
        """Raises unless the configuration is valid and all agents can answer."""
        agents = {**self._configured, **self.agents}
        await check_pair(self._preset, params, self._context, agents)


def _project(
    agents: Mapping[str, Agent], home: str | Path | None
) -> tuple[Settings, CompileContext]:
    environment = dict(os.environ)
    if home is not None:
        folder = Path(home).expanduser().absolute()
        environment[VARIABLE] = str(folder if folder.name == FOLDER else folder / FOLDER)
    where = expected_home(Path.cwd(), environment)
    try:
        settings = load_settings(where, environment)
    except ConfigError as error:
        raise ConfigurationError([Problem("settings", str(error))]) from error
    return settings, compile_context(where, settings, agents=agents)


def _store_context(agents: Mapping[str, Agent]) -> CompileContext:
    known = {
        name: KnownAgent(name, declared=partial(capabilities_of, agent))
        for name, agent in agents.items()
    }
    return CompileContext(root=Path.cwd(), agents=known, agent_names=sorted(known))


class _Seats:
    """Gives agents that are objects a name each, under which the run asks them."""

    def __init__(self, agents: dict[str, Agent]) -> None:
        self.agents = agents

    def params(
        self, writer: AgentLike | None, reviewers: Sequence[ReviewerLike] | None
    ) -> dict[str, Any]:
        """Returns the writer and the reviewers by name, as parameters."""
        named = None if writer is None else self._name_of(writer, AgentRole.WRITER)
        return {"writer": named, "reviewers": self._reviewers(reviewers)}

    def _reviewers(self, reviewers: Sequence[ReviewerLike] | None) -> list[str] | None:
        if reviewers is None:
            return None
        pairs = [each if isinstance(each, tuple) else (each, "") for each in reviewers]
        names = [(self._name_of(agent, AgentRole.REVIEWER), about) for agent, about in pairs]
        return [f"{name}={about}" if about else name for name, about in names]

    def _name_of(self, agent: AgentLike, role: AgentRole) -> str:
        if isinstance(agent, str):
            return agent
        others = sum(name.startswith(role) for name in self.agents)
        name = f"{role}-{others + 1}" if others else role.value
        self.agents[name] = agent if hasattr(agent, "ask") else CheckAgent(function=_check(agent))
        return name


def _check(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns a check that may answer with one problem as a text, or with an empty one."""

    @wraps(function)
    def check(text: str) -> Any:
        found = function(text)
        return ([found] if found else None) if isinstance(found, str) else found

    return check


def _approval(approve: str | Approve | None) -> dict[str, Any]:
    """Returns the settings of a way of approving."""
    if approve is None or callable(approve):
        return {}
    return (
        {"verdict": PHRASE_VERDICT, "strict": True} if approve == STRICT else {"verdict": approve}
    )
