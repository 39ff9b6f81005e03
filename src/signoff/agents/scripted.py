"""An agent that says what a test wrote down, and nothing else.

An answer is a text, a dict (which becomes a reply with that value, and its JSON as the
text), a whole `Reply`, an exception to raise, a `Delayed` one of these, or a function of
the request that returns one. Texts and dicts are judged as a model's would be: one that is
empty, or does not fit the schema asked for, raises `AgentBadOutput`; a `Reply` is taken as it
is. A prompt nobody foresaw is refused with what was asked.
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

from signoff.agents.answer import ModelAnswer as Judged
from signoff.agents.answer import judge
from signoff.agents.answer_entry import NOTHING
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentBadRequest
from signoff.runtime.ports import Call, Capabilities, Clock


@dataclass(frozen=True)
class Delayed:
    """An answer that takes its time."""

    seconds: float
    answer: Any


Said: TypeAlias = str | Reply | Mapping[str, Any] | BaseException | type[BaseException] | Delayed
ScriptedAnswer: TypeAlias = Said | Callable[[AgentRequest], Said | Awaitable[Said]]
Match: TypeAlias = str | re.Pattern[str] | Callable[[AgentRequest], bool]


class ScriptedAgent:
    """Answers from a list, in order, or by rules that look at the prompt."""

    capabilities = Capabilities(edits_files=True, is_model=False)

    def __init__(
        self,
        answers: Iterable[ScriptedAnswer] = (),
        *,
        usage: Usage | None = NOTHING,
        delay: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """Takes answers that are given once each; `usage=None` makes their cost unknown."""
        self.requests: list[AgentRequest] = []
        """Everything this agent was asked, in order."""
        self.calls: list[Call] = []
        """What it was told about each of these calls."""
        self.refused: list[str] = []
        """Prompts nobody foresaw."""
        self.most_at_once = 0
        """How many calls were under way at the same time, at most."""
        self._answers = deque(answers)
        self._rules: list[_Rule] = []
        self._usage = usage
        self._delay = delay
        self._clock = clock
        self.under_way = 0
        """How many calls are under way now."""

    def on(self, match: Match, *answers: ScriptedAnswer) -> ScriptedAgent:
        """Answers prompts that match, each answer in its turn and the last one from then on.

        A text matches a prompt that contains it, a pattern one it is found in, a function
        a request it returns true for. Rules come before the list, the first that fits wins.
        """
        if not answers:
            raise ValueError("a rule needs at least one answer")
        self._rules.append(_Rule(match, deque(answers)))
        return self

    @property
    def prompts(self) -> list[str]:
        """The prompts of everything it was asked."""
        return [request.prompt for request in self.requests]

    @property
    def left(self) -> int:
        """How many answers of the list were not asked for yet."""
        return len(self._answers)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Gives the answer that is due, or refuses."""
        self.requests.append(request)
        self.calls.append(call)
        answer = self._next(request)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await self._pause(self._delay)
            return await self._said(answer, request)
        finally:
            self.under_way -= 1

    def _next(self, request: AgentRequest) -> ScriptedAnswer:
        for rule in self._rules:
            if rule.fits(request):
                return rule.next()
        if self._answers:
            return self._answers.popleft()
        self.refused.append(request.prompt)
        raise AgentBadRequest(
            f"the scripted agent has no answer to its call {len(self.requests)}: "
            f"{request.prompt!r:.200} (give it one in the list, or with .on(...))"
        )

    async def _said(self, answer: Any, request: AgentRequest) -> Reply:  # noqa: C901  # a flat list
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
                    return judge(Judged(answer, usage=self._usage), request.schema)
                case Mapping():
                    text = json.dumps(dict(answer))
                    return judge(Judged(text, usage=self._usage), request.schema or {})
                case _:
                    answer = answer(request)
                    if inspect.isawaitable(answer):
                        answer = await answer

    async def _pause(self, seconds: float) -> None:
        if not seconds:
            return
        if self._clock is not None:
            await self._clock.sleep(seconds)
        else:
            await asyncio.sleep(seconds)


@dataclass(frozen=True)
class _Rule:
    match: Match
    answers: deque[ScriptedAnswer]

    def fits(self, request: AgentRequest) -> bool:
        if isinstance(self.match, str):
            return self.match in request.prompt
        if isinstance(self.match, re.Pattern):
            return self.match.search(request.prompt) is not None
        return self.match(request)

    def next(self) -> ScriptedAnswer:
        return self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
