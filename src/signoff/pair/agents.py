"""The writer and the reviewer as agents of their own, and whether agents are available.

`pair` asks agents inside a run. These are for programs that want to talk to one directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from signoff import errors
from signoff.agents.base import Health
from signoff.agents.ollama import OllamaModel
from signoff.core.context import StepContext
from signoff.core.error_info import ErrorInfo
from signoff.core.outcome import Outcome
from signoff.core.step import Result, StepDef
from signoff.core.workflow import Workflow
from signoff.notation import CompileContext
from signoff.pair.configuration import resolve_ollama, resolve_settings
from signoff.pair.errors import AgentError, ModelNotFoundError
from signoff.pair.ollama_config import OllamaConfig
from signoff.pair.presets import OLLAMA, SLOGAN
from signoff.pair.session import AgentRole
from signoff.pair.settings import PairSettings
from signoff.remedies import ChooseModel, PassOption
from signoff.runtime.ports import Agent

_SYSTEM = {AgentRole.WRITER: SLOGAN.writer_system, AgentRole.REVIEWER: SLOGAN.reviewer_system}
_cache: dict[tuple[AgentRole, str], OllamaAgent] = {}


class Message(NamedTuple):
    """What an agent answered."""

    content: str


class OllamaAgent:
    """A writer or a reviewer on an Ollama server."""

    def __init__(self, role: AgentRole, config: OllamaConfig) -> None:
        self.role = role
        self.config = config.model_copy()
        self._model = OllamaModel(
            model=config.model_name,
            base_url=config.base_url,
            timeout=config.request_timeout,
            options=config.options,
        )

    async def send_message(self, text: str) -> Message:
        """Returns the answer to a message; transient errors are retried with growing pauses."""
        from signoff.api import run_async
        from signoff.store.memory import MemoryStore

        params = {"prompt": text, "system": _SYSTEM[self.role]}
        result = await run_async(
            _MESSAGE, params, store=MemoryStore(), agents={OLLAMA: self._model}
        )
        if result.error is not None:
            raise agent_error(result.error)
        return Message(str(result.state["answer"]))


async def _answer(ctx: StepContext, prompt: str, system: str) -> Result:
    reply = await ctx.ask(OLLAMA, prompt, system=system)
    return Outcome.OK, {"answer": reply.text}


_MESSAGE = Workflow("message", StepDef("ask", handler=_answer, next={Outcome.OK: None}))
"""One request. As a run it gets the retries of the engine, and no loop of its own."""


def configured_agents(context: CompileContext) -> dict[str, Agent]:
    """Returns the Ollama server of pairs, for listing its models."""
    config = resolve_ollama(context.settings, context.agents.get(OLLAMA))
    return {OLLAMA: OllamaModel(base_url=config.base_url, model=config.model_name)}


async def create_writer_agent(config: OllamaConfig) -> OllamaAgent:
    """Returns a writer; raises `AgentError` if its server or its model is not available."""
    return await _create(AgentRole.WRITER, config)


async def create_reviewer_agent(config: OllamaConfig) -> OllamaAgent:
    """Returns a reviewer; raises `AgentError` if its server or its model is not available."""
    return await _create(AgentRole.REVIEWER, config)


async def get_cached_agent(role: AgentRole, config: OllamaConfig) -> OllamaAgent:
    """Returns the agent of a role, the same one for the same configuration."""
    key = (AgentRole(role), config.model_dump_json())
    if key not in _cache:
        _cache[key] = await _create(*key[:1], config)
    return _cache[key]


async def _create(role: AgentRole, config: OllamaConfig) -> OllamaAgent:
    await check_server(config.base_url, config.model_name)
    return OllamaAgent(role, config)


async def check_server(base_url: str, model: str) -> None:
    """Raises an `AgentError` unless the server runs and has the model; no model is called."""
    server = OllamaModel(base_url=base_url)
    try:
        names = await server.models()
    except errors.AgentError as error:
        health = await server.health()
        raise _unavailable(
            health if not health.ready else Health(False, str(error)), error
        ) from None
    if not {model, f"{model}:latest", model.removesuffix(":latest")} & set(names):
        raise ModelNotFoundError(
            f"Ollama at {base_url} has no model {model!r}; download it with: ollama pull {model}",
            available=names,
            remedy=(*(PassOption("model", each) for each in names[:1]), ChooseModel(tuple(names))),
        )


async def check_pair(
    preset: str, params: Mapping[str, Any], context: CompileContext, agents: Mapping[str, Agent]
) -> None:
    """Raises unless the configuration of a pair is valid and all its agents can answer."""
    settings = resolve_settings(preset, params, context)
    await check_available(PairSettings.of(settings), agents)


async def check_available(settings: PairSettings, agents: Mapping[str, Agent]) -> None:
    """Raises an `AgentError` if an agent of a pair cannot answer now; no model is called."""
    from signoff.agents.auto import check_health

    checked = set[str]()
    for seat in (settings.writer, *settings.reviewers):
        if seat.agent in checked:
            continue
        checked.add(seat.agent)
        if seat.options.get("base_url"):
            await check_server(seat.options["base_url"], seat.model or "")
        elif seat.agent in agents:
            health = await check_health(agents[seat.agent])
            if not health.ready:
                raise _unavailable(health, None, seat.agent)


def agent_error(error: ErrorInfo) -> AgentError:
    """Returns the error of a call, as one of pairs."""
    if error.kind == errors.ModelMissing.__name__:
        names = [
            n for each in error.remedies if isinstance(each, ChooseModel) for n in each.available
        ]
        return ModelNotFoundError(error.message, available=names, remedy=error.remedies)
    return AgentError(error.message, remedy=error.remedies)


def _unavailable(health: Health, error: errors.AgentError | None, agent: str = "") -> AgentError:
    about = f"{agent} is not ready: " if agent else ""
    # Some agents have the remedy in their details already.
    hint = f"; {health.remedy}" if health.remedy not in health.detail else ""
    found = AgentError(f"{about}{health.detail}{hint}", remedy=health.remedies)
    found.is_transient = isinstance(error, errors.AgentTransient | errors.AgentTimeout)
    return found
