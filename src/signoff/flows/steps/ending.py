"""How a flow's run ends with a result; `flows.end_view` shows every other end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.questions import Option
from signoff.core.requests import Choice, Request
from signoff.flows.files.patch import unified_diff
from signoff.flows.files.write_back import Written, write_back
from signoff.flows.flow import Flow
from signoff.flows.state import NOT_WRITTEN, FlowState
from signoff.flows.steps.updates import report_warnings, shortened
from signoff.runtime.project_files import conflict_text

WRITE_AGAIN, NO_WRITE = "write again", "finish without writing"


def at_limit(ctx: StepContext, flow: Flow) -> bool:
    """Tells whether no further round may start unless a human grants more."""
    # Each grant is as many rounds as the limit, so every multiple is a limit again.
    return ctx.iteration % flow.config.max_iterations == 0


async def save_result(
    ctx: StepContext,
    flow: Flow,
    state: Mapping[str, Any],
    warnings: Sequence[str] = (),
    *,
    ask: bool = False,
) -> dict[str, Any]:
    """Writes the artifact to `final/`; returns the update.

    `warnings` are what the user should know before using the artifact, such as a changed passage
    that was not read again. They are shown at the end of the run and in `status.md`. If a file of
    the project was changed meanwhile, `ask` leaves it to a human how the run ends; without it,
    the run fails, and a resume writes again.
    """
    output, view = flow.config.output, FlowState(state)
    update: dict[str, Any] = {}
    found = list(warnings)
    if not view.has_files:
        await ctx.write(f"{output.dir}/{output.filename}", view.artifact)
    elif output.write_back == "on_approval":
        # The end of a run shows the files in `final/`; here they go back to where they are from.
        written = await _write_back(ctx, flow, view.files, ask=ask)
        update = {"written": written}
        if written["conflicts"]:
            problem = conflict_text(written["conflicts"])
            found.append(problem)
            update |= report_warnings(ctx, [problem])
    return update | note_warnings(found)


async def _write_back(
    ctx: StepContext, flow: Flow, files: Mapping[str, str], *, ask: bool
) -> Written:
    """Writes files back until that works, or a human decides to end the run without it."""
    written = await write_back(ctx, flow, files, strict=not ask)
    while written["conflicts"]:
        request = _conflict_request(ctx.workflow_params["files"], files, written["conflicts"])
        answer = await ctx.wait(request, key=NOT_WRITTEN)
        if answer.value == NO_WRITE:
            break
        written = await write_back(ctx, flow, files)
    return written


def _conflict_request(
    before: Mapping[str, str], files: Mapping[str, str], conflicts: Sequence[str]
) -> Request:
    prompt = (
        f"The result is approved, but {conflict_text(conflicts)}. The approved files are in the "
        "run's result folder. Undo your change, or copy the approved file over it, and choose "
        f"{WRITE_AGAIN!r}; or merge them by hand and choose {NO_WRITE!r}."
    )
    options = [
        Option(WRITE_AGAIN, description="replace the files of the project now"),
        Option(NO_WRITE, description="the project stays as it is now"),
    ]
    shown = {"changes": unified_diff(before, files), "changed meanwhile": "\n".join(conflicts)}
    return Choice(ProductPrompt(prompt), options, question_id=NOT_WRITTEN, shown=shown)


def note_warnings(warnings: Sequence[str]) -> dict[str, Any]:
    """Returns the update that keeps what a user should know before using the artifact."""
    return {"result_warnings": [shortened(each) for each in warnings]} if warnings else {}
