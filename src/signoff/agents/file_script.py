"""Scripted answers from a file (see `answer_file`), for runs without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from signoff.agents.answer_entry import AnswerEntry, effect_key, find_entry
from signoff.agents.answer_file import read_entries
from signoff.agents.base import Health
from signoff.agents.scripted import Delayed, ScriptedAgent, ScriptedAnswer
from signoff.core.effects import AgentRequest
from signoff.core.one_line import start_of
from signoff.errors import AgentBadRequest, ConfigError
from signoff.runtime.ports import Call, Capabilities


class FileScript(ScriptedAgent):
    """Answers by the rules of a file, which is read on the first call.

    The first matching rule that is not used up answers. Uses are counted per run and include
    the calls of earlier processes, so a resumed run continues with the right rule.
    """

    capabilities = Capabilities(
        edits_files=True, is_model=False, local_health=True, path_options=("file",)
    )

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
        number = find_entry(entries, request, call, call.agent, used)
        if number is None:
            self.refused.append(request.prompt)
            raise AgentBadRequest(
                f"no rule of {self._file.name} matches the request of step {call.step!r} to agent "
                f"{call.agent!r} with key {effect_key(call)!r}: {start_of(request.prompt)!r}"
            )
        answer = partial(entries[number].answer, used=used[number])
        used[number] += 1
        delay = entries[number].data.get("delay")
        return Delayed(float(delay), answer) if delay else answer

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
                number = find_entry(self._entries, request, earlier, earlier.agent, used)
                if number is not None and not answered_by:
                    used[number] += 1
        return self._entries, self._used[run]
