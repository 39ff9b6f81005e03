"""What writers and reviewers are asked, as agents of their own too, and whether they can answer.

`pair` asks agents inside a run. These are for programs that want to talk to one directly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from signoff.agents.auto import check_health
from signoff.agents.base import Health
from signoff.agents.ollama import OllamaModel
from signoff.core import errors
from signoff.core.effects import AgentRequest, EffectId, ProductPrompt
from signoff.core.remedies import Install
from signoff.notation import CompileContext
from signoff.pair.config import (
    PRESETS,
    SLOGAN,
    STRUCTURED_VERDICT,
    OllamaConfig,
    PairPreset,
    PairSettings,
    Seat,
    resolve_settings,
)
from signoff.pair.session import AgentError, AgentRole, ModelNotFoundError
from signoff.review.pure.prompt_text import enclose
from signoff.review.pure.reviewer_verdict import PHRASE, SCHEMA
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


# What agents of pairs are asked, built from a preset, and the text in a writer's reply.


_QUOTED = re.compile('["\u201c\u00ab]([^"\u201c\u201d\u00ab\u00bb]+)["\u201d\u00bb]')
"""A text in quotation marks; a quotation inside a text is a part of it."""
_SINGLE_QUOTED = re.compile("\u2018([^\u2018]+)\u2019")
_EMPHASIZED = re.compile(r"([*_]{1,3})(?=\S)([^*_]+)(?<=\S)\1")
_LABEL = re.compile(
    r"[*_]{0,3}(?:(?:the|your|new|final|revised|improved|better)\s+){0,2}"
    r"(?:slogan|tagline|headline|title|version|answer|result|output)\s*:[*_]{0,3}\s*",
    re.IGNORECASE,
)
"""What small models write before a result of one line."""


def writer_prompt(
    preset: PairPreset, task: str, last: Mapping[str, Any] | None = None
) -> ProductPrompt:
    """Returns the prompt for a new version; `last` is the turn before, if there was one."""
    parts = [preset.request.format(task=task)]
    if last is not None:
        if last["text"]:
            parts.append(f"Your previous {preset.noun}: {_shown(preset, last['text'])}")
        parts += [
            f"{preset.feedback_heading}\n{last['feedback']}",
            f"Write a better {preset.noun} that takes this into account.",
        ]
    material = [task, last and [last["text"], last["feedback"]]]
    return ProductPrompt("\n\n".join(parts), material, system=preset.writer_system)


def reviewer_prompt(settings: PairSettings, seat: Seat, text: str) -> ProductPrompt:
    """Returns the prompt for a review of a text."""
    preset = PRESETS[settings.preset]
    parts = [preset.review_request.format(text=_shown(preset, text))]
    about = {
        "It was written for this": settings.task,
        "It has to meet these criteria": settings.criteria,
        "Look only at this": seat.specialty,
    }
    parts += [f"{label}: {value}" for label, value in about.items() if value]
    structured = settings.verdict == STRUCTURED_VERDICT
    if structured and not seat.takes_schema:
        parts.append(
            f'If nothing has to change, reply with exactly "{PHRASE}!". Otherwise reply with what '
            "has to change."
        )
    schema = SCHEMA if structured and seat.takes_schema else None
    material = [text, settings.task, settings.criteria, seat.specialty]
    return ProductPrompt("\n\n".join(parts), material, system=preset.reviewer_system, schema=schema)


def _shown(preset: PairPreset, text: str) -> str:
    """Returns a text as prompts show it: a short one as it is, any other between delimiters.

    A long text could pretend to be a part of the prompt, and small models copy delimiters.
    """
    return text if preset.longest_text else f"\n\n{enclose('TEXT', text)}"


def own_text(reply: str, preset: PairPreset) -> str:
    """Returns the text in a writer's reply, without thoughts before and explanations after it."""
    # Reasoning models write their thoughts into the answer; what follows the last of them is the
    # text.
    text = reply.rpartition("</think>")[2].strip()
    if not preset.one_paragraph:
        return text
    return _bare(re.split(r"\n\s*\n", _without_lead_in(text), maxsplit=1)[0].strip())


def _without_lead_in(text: str) -> str:
    """Returns a reply without a first line such as `Sure! Here is a slogan:`; empty if that is all.

    A slogan may have a colon at the end of a line; a lead-in is only a first line with nothing but
    marks behind its colon.
    """
    first, _, rest = text.partition("\n")
    return rest.strip() if first.rstrip(" *_").endswith(":") else text


def _bare(text: str) -> str:
    """Returns a text of one line without a label before it and marks around it."""
    if "\n" in text:
        quoted = _QUOTED.fullmatch(text)
        return quoted[1].strip() if quoted else text
    before = ""
    # Marks are nested in any order, as in a label before a bold quotation, so this goes on until
    # nothing is left to remove.
    while text != before:
        before = text
        for marks in (_QUOTED, _SINGLE_QUOTED, _EMPHASIZED):
            if inside := marks.fullmatch(text):
                text = inside[marks.groups].strip()
        if label := _LABEL.match(text):
            text = text[label.end() :]
    return text
