"""How a flow's run ends with an approval; `flows.end_view` shows every other end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.flows.files.write_back import write_back
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState
from signoff.flows.steps.updates import shortened


def at_limit(ctx: StepContext, flow: Flow) -> bool:
    """Tells whether no further iteration may start unless a human grants more."""
    # Each grant is as many rounds as the limit, so every multiple is a limit again.
    return ctx.iteration % flow.config.max_iterations == 0


async def save_approved(
    ctx: StepContext, flow: Flow, state: Mapping[str, Any], warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """Writes the approved artifact to `final/`; returns the update.

    `warnings` are what the user should know before using the artifact, such as a changed passage
    that was not read again. They are shown at the end of the run and in `status.md`.
    """
    output, view = flow.config.output, FlowState(state)
    update: dict[str, Any] = {}
    found = list(warnings)
    if not view.has_files:
        await ctx.write(f"{output.dir}/{output.filename}", view.artifact)
    elif output.write_back == "on_approval":
        # The end of a run shows the files in `final/`; here they go back to where they are from.
        update = {"written": await write_back(ctx, flow, view.files)}
        found += [f"not written back, it was changed: {p}" for p in update["written"]["conflicts"]]
    return update | note_warnings(found)


def note_warnings(warnings: Sequence[str]) -> dict[str, Any]:
    """Returns the update that keeps what a user should know before using the artifact."""
    return {"approval_warnings": [shortened(each) for each in warnings]} if warnings else {}
