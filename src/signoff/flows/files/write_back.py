"""Puts the fixed files of a run back into the project, as one durable effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.context import StepContext
from signoff.core.digest import text_digest
from signoff.core.effects import Effect, EffectKind
from signoff.errors import UsageError
from signoff.flows.flow import Flow

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
