"""The writer and the reviewer as agents of their own, and whether agents are available.

`pair` asks agents inside a run. These are for programs that want to talk to one directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from signoff import errors
from signoff.agents.auto import check_health
from signoff.agents.base import Health
from signoff.agents.ollama import OllamaModel
from signoff.core.effects import AgentRequest, EffectId
from signoff.notation import CompileContext
from signoff.pair.config import OllamaConfig, PairSettings, resolve_ollama, resolve_settings
from signoff.pair.presets import OLLAMA, SLOGAN
from signoff.pair.prompts import own_text, writer_prompt
from signoff.pair.session import AgentError, AgentRole, ModelNotFoundError
from signoff.remedies import Install
from signoff.runtime.ports import Agent, Call

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
        """Returns the answer to a message; raises `AgentError`. Retrying is up to the caller."""
        request = AgentRequest(text, system=_SYSTEM[self.role])
        try:
            reply = await self._model.ask(request, Call("", EffectId(self.role)))
        except errors.AgentError as error:
            raise agent_error(error) from error
        return Message(reply.text)

    async def generate(self, user_input: str, feedback: str | None = None) -> str:
        """Returns a slogan for a product, or a better one that takes feedback into account."""
        last = {"text": "", "feedback": feedback} if feedback else None
        reply = await self.send_message(writer_prompt(SLOGAN, user_input, last))
        return own_text(reply.content, SLOGAN)

    async def evaluate(self, slogan: str) -> str:
        """Returns the review of a slogan; `is_approved` tells whether it approves."""
        request = SLOGAN.review_request.format(text=slogan)
        return (await self.send_message(request)).content.strip()


def configured_agents(context: CompileContext) -> dict[str, Agent]:
    """Returns the Ollama server of pairs, for listing its models."""
    config = resolve_ollama(context)
    return {OLLAMA: OllamaModel(base_url=config.base_url, model=config.model_name)}


async def create_writer_agent(config: OllamaConfig) -> OllamaAgent:
    """Returns a writer; raises `AgentError` if its server or its model is not available."""
    return await _create(AgentRole.WRITER, config)


async def create_reviewer_agent(config: OllamaConfig) -> OllamaAgent:
    """Returns a reviewer; raises `AgentError` if its server or its model is not available."""
    return await _create(AgentRole.REVIEWER, config)


async def get_cached_agent(role: AgentRole, config: OllamaConfig) -> OllamaAgent:
    """Returns the agent of a role, the same one for the same configuration."""
    # The whole configuration is the key: two calls that differ in the temperature alone must not
    # share an agent.
    key = (AgentRole(role), config.model_dump_json())
    if key not in _cache:
        _cache[key] = await _create(key[0], config)
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
        unavailable = _unavailable(server.health_after(error))
        unavailable.is_transient = isinstance(error, errors.AgentTransient | errors.AgentTimeout)
        # Without the client, nobody can tell, and most users without it have no server either.
        no_client = any(isinstance(each, Install) for each in error.remedies)
        no_answer = isinstance(error, errors.AgentTransient) and error.status is None
        unavailable.no_server = no_client or no_answer
        raise unavailable from None
    # Ollama adds `:latest` to a model that is named without a tag, and lists it that way.
    if not {model, f"{model}:latest", model.removesuffix(":latest")} & set(names):
        raise ModelNotFoundError(
            f"Ollama at {base_url} has no model {model!r}; download it with: ollama pull {model}",
            available=names,
        )


async def check_pair(
    preset: str, params: Mapping[str, Any], context: CompileContext, agents: Mapping[str, Agent]
) -> None:
    """Raises unless the configuration of a pair is valid and all its agents can answer.

    No model is called.
    """
    settings = PairSettings.model_validate(resolve_settings(preset, params, context))
    seats = {each.agent: each for each in (settings.seats.writer, *settings.seats.reviewers)}
    for name, seat in seats.items():
        if seat.options.get("base_url"):
            await check_server(seat.options["base_url"], seat.model or "")
        elif name in agents:
            health = await check_health(agents[name])
            if not health.ready:
                raise _unavailable(health, f"{name} is not ready: ")


def agent_error(error: errors.AgentError) -> AgentError:
    """Returns the error of a call, as one of pairs."""
    if isinstance(error, errors.ModelMissing):
        return ModelNotFoundError(str(error), available=error.available)
    raised = AgentError(str(error), remedy=error.remedies)
    raised.is_transient = isinstance(error, errors.AgentTransient | errors.AgentTimeout)
    return raised


def _unavailable(health: Health, about: str = "") -> AgentError:
    # Some agents have the remedy in their details already.
    hint = f"; {health.remedy}" if health.remedy not in health.detail else ""
    return AgentError(f"{about}{health.detail}{hint}", remedy=health.remedies)
