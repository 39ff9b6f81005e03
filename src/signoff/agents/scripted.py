"""Agents with scripted answers, from code or from a file, for tests and runs without a model.

In code, an answer is a text, a dict (which becomes a reply with that value, and its JSON as the
text), a whole `Reply`, an exception to raise, a `Delayed` one of these, or a function of
the request that returns one. Texts and dicts are checked like a model's answer: one that is
empty or does not match the schema raises `AgentBadOutput`. A `Reply` is returned unchecked.
A prompt without an answer is refused with an error that shows it. For files, see `answer_file`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from signoff.agents.answer import ModelAnswer, judge
from signoff.agents.answer_file import AnswerEntry, effect_key, read_entries, take_answer
from signoff.agents.base import Health
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadRequest, ConfigError
from signoff.core.one_line import start_of
from signoff.core.spend import Usage
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
        # Chosen before the first pause: concurrent calls get their answers in the order of the
        # calls.
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
                # The last answer repeats, so a script need not know how many rounds a loop takes.
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


class FileScript(ScriptedAgent):
    """Answers by the rules of a file, which is read on the first call.

    The first matching rule that is not used up answers. Uses are counted per run and include
    the calls of earlier processes, so a resumed run continues with the right rule.
    """

    capabilities = Capabilities(edits_files=True, is_model=False, path_options=("file",))

    def __init__(self, *, file: str | Path) -> None:
        super().__init__()
        self._file = Path(file)
        self._entries: list[AnswerEntry] | None = None
        self._used: dict[str, Counter[int]] = {}

    async def health(self) -> Health:
        """Checks that the file is valid."""
        try:
            rules = read_entries(self._file)
        except ConfigError as error:
            return Health(False, str(error), "fix the file")
        return Health(True, f"{self._file}, {len(rules)} rules")

    def _next(self, request: AgentRequest) -> ScriptedAnswer:
        call = self.calls[-1]
        entries, used = self._rules_for(call)
        answer = take_answer(entries, request, call, call.agent, used)
        if answer is None:
            self.refused.append(request.prompt)
            raise AgentBadRequest(
                f"no rule of {self._file.name} matches the request of step {call.step!r} to agent "
                f"{call.agent!r} with key {effect_key(call)!r}: {start_of(request.prompt)!r}"
            )
        return answer

    def _rules_for(self, call: Call) -> tuple[Sequence[AnswerEntry], Counter[int]]:
        """Returns the rules, and how often each was used in the call's run."""
        if self._entries is None:
            try:
                self._entries = read_entries(self._file)
            except ConfigError as error:
                raise AgentBadRequest(str(error)) from error
        run = call.run_key or call.run
        if run not in self._used:
            # A resumed run has answers that another process gave; replaying the choice of rules
            # for those calls restores the counts.
            used = self._used[run] = Counter()
            for request, earlier, answered_by in call.earlier():
                if not answered_by:
                    take_answer(self._entries, request, earlier, earlier.agent, used)
        return self._entries, self._used[run]


def _matches(match: Match, request: AgentRequest) -> bool:
    if isinstance(match, str):
        return match in request.prompt
    if isinstance(match, re.Pattern):
        return match.search(request.prompt) is not None
    return match(request)
