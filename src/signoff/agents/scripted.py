"""An agent with scripted answers, for tests.

An answer is a text, a dict (which becomes a reply with that value, and its JSON as the
text), a whole `Reply`, an exception to raise, a `Delayed` one of these, or a function of
the request that returns one. Texts and dicts are checked like a model's answer: one that is
empty or does not match the schema raises `AgentBadOutput`. A `Reply` is returned unchecked.
A prompt without an answer is refused with an error that shows it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from signoff.agents.answer import ModelAnswer, judge
from signoff.core.effects import AgentRequest, Reply
from signoff.core.one_line import start_of
from signoff.core.spend import Usage
from signoff.errors import AgentBadRequest
from signoff.runtime.effect_errors import FREE
from signoff.runtime.ports import Call, Capabilities, Clock


@dataclass(frozen=True)
class Delayed:
    """An answer that arrives after a delay."""

    seconds: float
    answer: Any


Answer: TypeAlias = str | Reply | Mapping[str, Any] | BaseException | type[BaseException] | Delayed
ScriptedAnswer: TypeAlias = Answer | Callable[[AgentRequest], Answer | Awaitable[Answer]]
Match: TypeAlias = str | re.Pattern[str] | Callable[[AgentRequest], bool]


class ScriptedAgent:
    """Answers from a list, in order, or by rules that look at the prompt."""

    capabilities = Capabilities(edits_files=True, is_model=False)

    def __init__(
        self,
        answers: Iterable[ScriptedAnswer] = (),
        *,
        usage: Usage | None = FREE,
        delay: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """Takes answers that are used once each; `usage=None` makes their cost unknown."""
        self.requests: list[AgentRequest] = []
        """All requests, in order."""
        self.calls: list[Call] = []
        """The call of each request."""
        self.refused: list[str] = []
        """Prompts without an answer."""
        self.most_at_once = 0
        """The largest number of calls that ran at the same time."""
        self._answers = deque(answers)
        self._rules: list[tuple[Match, deque[ScriptedAnswer]]] = []
        self._usage = usage
        self._delay = delay
        self._clock = clock
        self.under_way = 0
        """How many calls are running now."""

    def on(self, match: Match, *answers: ScriptedAnswer) -> ScriptedAgent:
        """Answers matching prompts with each answer in turn; the last one repeats.

        A text matches prompts that contain it, a pattern prompts it is found in, a function
        requests it returns true for. The first matching rule wins, before the list.
        """
        if not answers:
            raise ValueError("a rule needs at least one answer")
        self._rules.append((match, deque(answers)))
        return self

    @property
    def prompts(self) -> list[str]:
        """The prompts of all requests."""
        return [request.prompt for request in self.requests]

    @property
    def remaining(self) -> int:
        """How many answers of the list are unused."""
        return len(self._answers)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Returns the next answer, or refuses."""
        self.requests.append(request)
        self.calls.append(call)
        answer = self._next(request)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await self._pause(self._delay)
            return await self._reply(answer, request)
        finally:
            self.under_way -= 1

    def _next(self, request: AgentRequest) -> ScriptedAnswer:
        for match, answers in self._rules:
            if _matches(match, request):
                return answers.popleft() if len(answers) > 1 else answers[0]
        if self._answers:
            return self._answers.popleft()
        self.refused.append(request.prompt)
        raise AgentBadRequest(
            f"the scripted agent has no answer to its call {len(self.requests)}: "
            f"{start_of(request.prompt)!r} (add one to the list, or with .on(...))"
        )

    async def _reply(self, answer: Any, request: AgentRequest) -> Reply:  # noqa: C901  # a flat list
        while True:
            match answer:
                case Delayed():
                    await self._pause(answer.seconds)
                    answer = answer.answer
                case BaseException():
                    raise answer
                case type():
                    answer = answer()
                case Reply():
                    return answer
                case str():
                    return judge(ModelAnswer(answer, usage=self._usage), request.schema)
                case Mapping():
                    text = json.dumps(dict(answer))
                    return judge(ModelAnswer(text, usage=self._usage), request.schema or {})
                case _:
                    answer = answer(request)
                    if inspect.isawaitable(answer):
                        answer = await answer

    async def _pause(self, seconds: float) -> None:
        if seconds:
            await (self._clock.sleep(seconds) if self._clock else asyncio.sleep(seconds))


def _matches(match: Match, request: AgentRequest) -> bool:
    if isinstance(match, str):
        return match in request.prompt
    if isinstance(match, re.Pattern):
        return match.search(request.prompt) is not None
    return match(request)
