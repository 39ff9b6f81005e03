"""What a flow's sources will not give it, told before it runs.

Nothing of this stops a run, and the prompts say it as well; but whoever started the run
reads the terminal, not the prompts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from signoff.flows.flow import Flow
from signoff.review.constraint import SourceBlock
from signoff.review.sources import read_source

VARIABLE = "{{"
"""Paths with one in them may lead into the run's own folder, which is not there yet."""


def source_remarks(flow: Flow) -> Iterator[str]:
    """Yields what cannot be read and which scripts will not run."""
    blocks = {"the goal": flow.goal.source, **{c.id: c.source for c in flow.constraints}}
    allowed = [flow.home] if flow.home else []
    for of, block in blocks.items():
        read = read_source(_plain(block), root=flow.root, allowed=allowed, variables={})
        for said in (*read.errors, *read.warnings):
            yield f"sources of {of}: {said}"
    idle = [] if flow.allow_scripts else _scripts(flow)
    if idle:
        listed = ", ".join(idle)
        yield f"scripts run only if the run allows them (allow_scripts); these will not: {listed}"


def _plain(block: SourceBlock) -> SourceBlock:
    def without(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path for path in paths if VARIABLE not in path)

    return replace(block, files=without(block.files), globs=without(block.globs), scripts=())


def _scripts(flow: Flow) -> list[str]:
    sources = [flow.goal.source, *(constraint.source for constraint in flow.constraints)]
    named = [script for source in sources for script in source.scripts]
    return [*named, *(c.script for c in flow.constraints if c.script.strip())]
