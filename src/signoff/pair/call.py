"""Runs pairs from Python: `pair`, and the calls for slogans built on it.

A pair is a run of one workflow, so there is no loop here: the engine drives the turns, records
each call, and resumes after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeAlias

from signoff.agents.base import KnownAgent
from signoff.agents.check import CheckAgent
from signoff.agents.ollama import OllamaModel
from signoff.api import LimitsLike, resume_async, run_async
from signoff.app.settings.agents import build_agents
from signoff.core.amounts import count
from signoff.core.errors import Problem
from signoff.notation import CompileContext
from signoff.pair.agents import check_pair
from signoff.pair.config import OLLAMA, PHRASE_VERDICT, project_context
from signoff.pair.session import (
    AgentError,
    AgentRole,
    ApprovalTimeoutError,
    CompletionReason,
    ConfigurationError,
    IterationSession,
    WorkflowError,
    session_of,
)
from signoff.pair.workflow import Approve, build
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

    `values` are any of: criteria, checks, verdict, strict, max_turns (1 to 10), model_name,
    temperature, max_tokens, base_url, request_timeout. Those that are missing come from the
    environment, the settings and the built-in values.

    Raises `ConfigurationError` or `AgentError` before anything is started. An error in a turn ends
    the session with the turns before it. With `require_approval`, a session that ends without an
    approval raises `ApprovalTimeoutError`.
    """
    # Everything that can be wrong is found before the run exists, so a mistake leaves nothing
    # behind in the store.
    call = _Call(preset, writer, reviewers, approve, agents, store, home)
    params = {"task": task, **call.params, **values}
    await call.check(params)
    result = await run_async(
        call.workflow,
        params,
        name=name,
        limits=limits,
        observers=observers,
        **call.place,
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
    session, attempt = None, 0
    while True:
        attempt += 1
        try:
            # Every attempt after the first one resumes, so no finished call is paid for again.
            session = await (
                run_slogan_generation(user_input, **options)
                if session is None
                else resume_pair(session.run, preset="slogan", **options)
            )
            if session.completion_reason is not CompletionReason.ERROR:
                return session
            error = AgentError(session.error or "", session=session)
            error.is_transient = session.error_kind not in _PERMANENT
        except AgentError as unavailable:
            error = unavailable
        # A missing key or a refused prompt is the same in two seconds; waiting would only hide it.
        if not error.is_transient:
            raise error
        if attempt == max_retries:
            attempts = count(max_retries, "attempt")
            raise WorkflowError(f"Failed after {attempts}: {error}", session=session) from error
        await clock.sleep(2.0**attempt)


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
    call = _Call(preset, writer, reviewers, approve, agents, store, home)
    result = await resume_async(
        run,
        call.workflow,
        limits=limits,
        observers=observers,
        **call.place,
    )
    return session_of(result)


class _Call:
    """One call of a pair: its agents, the parameters that name them, and its workflow."""

    def __init__(
        self,
        preset: str,
        writer: AgentLike | None,
        reviewers: Sequence[ReviewerLike] | None,
        approve: str | Approve | None,
        agents: Mapping[str, Agent] | None,
        store: Store | None,
        home: str | Path | None,
    ) -> None:
        self.agents = dict(agents or {})
        self._configured: Mapping[str, Agent] = {}
        self.params = self._seated(writer, reviewers) | _approval(approve)
        if store is None:
            settings, self._context = project_context(self.agents, home)
            self._configured = build_agents(settings.agents)
        else:
            # With a store of its own, a program reads and writes nothing else.
            self.agents = {OLLAMA: OllamaModel(), **self.agents}
            self._context = _store_context(self.agents)
        self._preset = preset
        # A function cannot be stored with the run, so it is part of the workflow, and a resume has
        # to pass it again.
        workflow = build(preset, self._context, approve if callable(approve) else None)
        self.workflow = workflow.with_source(given=self._context.stored)
        self.place: dict[str, Any] = {"store": store, "home": home, "agents": self.agents}
        """Where the run is, and who answers in it; starting and resuming take the same."""

    async def check(self, params: Mapping[str, Any]) -> None:
        """Raises unless the configuration is valid and all agents can answer."""
        agents = {**self._configured, **self.agents}
        await check_pair(self._preset, params, self._context, agents)

    def _seated(
        self, writer: AgentLike | None, reviewers: Sequence[ReviewerLike] | None
    ) -> dict[str, Any]:
        """Returns the writer and the reviewers by name; those that are objects get one each."""
        names: dict[str, Any] = {}
        if writer is not None:
            names["writer"] = self._name_of(writer, AgentRole.WRITER)
        if reviewers is not None:
            pairs = [each if isinstance(each, tuple) else (each, "") for each in reviewers]
            seats = [(self._name_of(agent, AgentRole.REVIEWER), about) for agent, about in pairs]
            names["reviewers"] = [f"{name}={about}" if about else name for name, about in seats]
        return names

    def _name_of(self, agent: AgentLike, role: AgentRole) -> str:
        if isinstance(agent, str):
            return agent
        # An agent that is an object has no name, and the run records names: it gets that of its
        # role, numbered where there are several.
        others = sum(name.startswith(role) for name in self.agents)
        name = f"{role}-{others + 1}" if others else role.value
        self.agents[name] = agent if hasattr(agent, "ask") else CheckAgent(function=_check(agent))
        return name


def _store_context(agents: Mapping[str, Agent]) -> CompileContext:
    known = {
        name: KnownAgent(name, declared=partial(capabilities_of, agent))
        for name, agent in agents.items()
    }
    return CompileContext(root=Path.cwd(), agents=known, agent_names=sorted(known))


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
