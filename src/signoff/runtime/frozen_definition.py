"""Compares a workflow with the definition that a run was started with."""

from __future__ import annotations

from signoff.core.digest import SHORT
from signoff.core.workflow import Workflow
from signoff.errors import DefinitionChanged
from signoff.remedies import PassOption, Resume
from signoff.runtime.store_port import RunRow


def check_definition(row: RunRow, workflow: Workflow, *, adopt: bool) -> None:
    """Refuses to continue a run with a changed definition, unless the user adopts it."""
    name = row.name
    if row.definition != workflow.digest and not adopt:
        if workflow.name != row.workflow:
            raise DefinitionChanged(
                f"run {name!r} belongs to workflow {row.workflow!r}, not to {workflow.name!r}; "
                "to resume it with that one anyway, adopt it",
                remedy=PassOption("adopt"),
            )
        raise DefinitionChanged(
            f"run {name!r} was started with definition {row.definition[:SHORT]}, and "
            f"{workflow.name!r} is now {workflow.digest[:SHORT]}",
            remedy=Resume(name, adopt=True),
        )
    if row.step is not None and row.step not in workflow.steps:
        raise DefinitionChanged(
            f"run {name!r} is in step {row.step!r}, which {workflow.name!r} no longer has; "
            "restore that step, or start a new run"
        )
