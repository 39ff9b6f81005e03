"""Changes to a run that its user requests when it continues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.core import events as ev
from signoff.core.spend import Limits
from signoff.core.workflow import Workflow
from signoff.runtime.journal import RunJournal
from signoff.runtime.services import EngineServices
from signoff.runtime.store_port import RunRow, Store


@dataclass(frozen=True)
class RunChanges:
    """How a run continues otherwise than it was started."""

    limits: Limits | None = None
    adopt: bool = False
    """Whether a changed definition is accepted."""
    switch: Mapping[str, str] = field(default_factory=dict)
    """Agents, and those that answer in their place from here on."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Corrections of parameters that no finished step has used."""

    @property
    def are_decisions(self) -> bool:
        """Whether they change what the run does, and not only how much it may cost."""
        return bool(self.adopt or self.switch or self.params)


def check_switch(services: EngineServices, switch: Mapping[str, str]) -> None:
    """Raises `UnknownName` if an agent is to be replaced by one that does not exist."""
    for to in switch.values():
        services.performers.agent(to)


def record_switch(journal: RunJournal, switch: Mapping[str, str]) -> None:
    """Records which agents answer in place of others from here on."""
    for agent, to in switch.items():
        journal.record(ev.AgentSwitched(agent, to))


def record_changes(
    store: Store, journal: RunJournal, row: RunRow, workflow: Workflow, changes: RunChanges
) -> None:
    """Records changes of a run that was taken; `row` is from before that."""
    if row.definition != workflow.digest:
        store.adopt(journal.run, workflow.digest, workflow.definition_json)
        journal.record(ev.DefinitionAdopted(workflow.digest))
    if changes.params:
        journal.record(ev.ParamsCorrected(workflow.correct(changes.params, journal.state)))
    if changes.limits is not None:
        journal.record(ev.LimitsChanged(changes.limits.over(journal.state.limits).to_json()))
    record_switch(journal, changes.switch)
