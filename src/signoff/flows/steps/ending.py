"""How a flow's run ends with a result; `flows.end_view` shows every other end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.effects import Effect, EffectKind, ProductPrompt
from signoff.core.questions import Option
from signoff.core.requests import Choice, Request
from signoff.errors import UsageError
from signoff.flows.flow import Flow
from signoff.flows.state import NOT_WRITTEN, FlowState
from signoff.flows.steps.updates import report_warnings, shortened
from signoff.review.diff import unified_diff
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
    # Nothing is written if a single file has changed meanwhile: half of a reviewed change was
    # reviewed by nobody.
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


Written = Mapping[str, list[str]]
"""The files that were `written`, and the `conflicts` because of which none was."""
NOTHING: Written = {"written": [], "conflicts": []}


async def write_back(
    ctx: StepContext, flow: Flow, files: Mapping[str, str], *, strict: bool = False
) -> Written:
    """Replaces the files that a run has changed; returns what was written, or what conflicts.

    If any file is not what the run has read, or the new text already, nothing is written. A
    process that dies in between leaves each file old or new, and a resume writes the rest. With
    `strict`, a conflict is an error that fails the run, and a resume tries again.
    """
    changed, expected = changed_files(ctx.workflow_params["files"], files)
    if not changed:
        return NOTHING
    if ctx.port is None:
        raise UsageError("files can only be written by a run")
    # Where the project is does not identify the request: it may be moved between two resumes.
    material = {"files": changed, "expected": expected}
    payload: dict[str, Any] = {"root": str(flow.root), "strict": strict, **material}
    effect = Effect(EffectKind.REPLACE, "write back", payload, material=material)
    reply: dict[str, list[str]] = await ctx.port.perform(ctx, effect)
    return reply


def changed_files(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the files that differ, and the digests of what they were."""
    changed = {path: text for path, text in after.items() if text != before.get(path)}
    return changed, {path: text_digest(before.get(path, "")) for path in changed}
