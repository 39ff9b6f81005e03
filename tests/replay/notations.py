"""Review flows, a contract workflow and a pair, recorded in the middle of their runs.

Once a version is released, the definitions and the answers must never change: they are part of
what was recorded. The words of prompts may.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from signoff.contracts import define_workflow
from signoff.core.errors import UnknownName, WriteFailed
from signoff.core.workflow import Workflow
from signoff.notation import CompileContext
from signoff.pair.workflow import build
from signoff.review.flow.compile import compile_flow
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.run_files import RunFiles
from signoff.store.sqlite import SqliteStore
from signoff.testing import FrozenClock, ScriptedAgent
from tests.replay.recordings import Until
from tests.unit.review.flow.harness import constraint, fails, flow, issue, passes, rules, step


@dataclass(frozen=True)
class Story:
    """A run that is driven in the same order every time."""

    workflow: Workflow
    replies: Mapping[str, Sequence[str]]
    """What each agent answers, call by call."""
    answers: Sequence[tuple[str, str]]
    """What people answer, one after the other, with an explanation."""
    params: Mapping[str, Any] = field(default_factory=dict)


REVIEW = Story(
    compile_flow(
        flow(
            [
                step("generate", agent="author"),
                step("critique", agent="critic"),
                step("adjudicate", agent="judge"),
                step(
                    "refine",
                    agent="author",
                    mode="rewrite",
                    validation_retries=1,
                    on_invalid="escalate",
                ),
            ],
            [constraint("clear"), constraint("short")],
            root=Path("project"),
        ),
        "review",
    ),
    {
        "author": ["Text.", "Text.", "Text.", "More text."],
        "critic": [passes(), "what?", "what?", passes(), passes()],
        "judge": ["hm", "hm", rules("REWRITE", bill="Say more.")],
    },
    [("fail", "Too long."), ("retry", ""), ("accept", "")],
)

TRIP = Story(
    define_workflow(
        {
            "type": "trip",
            "steps": [
                {
                    "name": "list",
                    "prompt": "List the towns.",
                    "agent": "guide",
                    "postconditions": [
                        {
                            "name": "several",
                            "check": "size(result.towns) > 1",
                            "error": "one town is no trip",
                        }
                    ],
                    "next": "visit",
                },
                {
                    "name": "visit",
                    "prompt": "Describe {{item}}.",
                    "agent": "guide",
                    "parallel": True,
                    "parallel_key": "towns",
                    "postconditions": [{"name": "seen", "check": "result.seen"}],
                },
            ],
        }
    ),
    {
        "guide": [
            json.dumps({"towns": ["Ulm"]}),
            json.dumps({"towns": ["Ulm", "Bern"]}),
            json.dumps({"seen": True}),
            *[json.dumps({"seen": False})] * 2,
            json.dumps({"seen": True}),
        ]
    },
    [("retry", "")],
)

REREAD = Story(
    compile_flow(
        flow(
            [
                step("generate", agent="author"),
                step("critique", agent="critic"),
                step("adjudicate", agent="policy"),
                step("refine", agent="author", mode="rewrite", loop_to="critique"),
            ],
            [constraint("clear"), constraint("short")],
            root=Path("project"),
            kinds={"critic": "claude"},
            rereview="changed",
        ),
        "reread",
    ),
    {
        "author": ["Text.", "More text."],
        "critic": [fails(issue("vague", evidence="Text.")), passes(), "what?", "what?"],
    },
    [("pass", "")],
)

SLOGAN = Story(
    build("slogan", CompileContext(root=Path("project"), agents={})),
    {"author": ["x" * 600, "One.", "Two words."], "critic": ["Too short.", "SHIP IT!"]},
    [],
    {"task": "bottles", "writer": "author", "reviewers": ["critic"]},
)

STORIES = {"review": REVIEW, "trip": TRIP, "reread": REREAD, "slogan": SLOGAN}


def cast(story: Story, asked: Mapping[str, int] | None = None) -> dict[str, ScriptedAgent]:
    """Returns the agents with the answers they have left."""
    known = asked or {}
    return {
        name: ScriptedAgent(list(replies[known.get(name, 0) :]))
        for name, replies in story.replies.items()
    }


async def tell(
    story: Story,
    store: Any,
    agents: Mapping[str, Any],
    answers: Sequence[tuple[str, str]],
    folder: Path,
) -> RunResult:
    """Starts or resumes the run and answers what it asks, as far as answers are left."""
    clock = FrozenClock(1_700_000_000.0)
    async with Engine(store, agents=agents, clock=clock, files=RunFiles(folder)) as engine:
        try:
            store.row("run")
            result = await engine.resume("run", story.workflow)
        except UnknownName:
            result = await engine.start(story.workflow, story.params, name="run")
        for value, text in answers:
            (item,) = store.items("run")
            answer = json.dumps({"value": value, "text": text})
            store.answer(item.id, answer, "ann", 1.0, item.digest)
            result = await engine.resume("run", story.workflow)
        return result


async def record(path: Path, name: str, *, answers: int = 0, commits: int = -1) -> None:
    """Runs a story in a new database, up to a commit or an unanswered request."""
    story, inner = STORIES[name], SqliteStore(path)
    with suppress(WriteFailed):
        store = Until(inner, commits)
        await tell(story, store, cast(story), story.answers[:answers], path.parent)
    inner.close()


RECORDINGS = {
    "review-refine": partial(record, name="review", answers=2),
    "review-killed": partial(record, name="review", commits=4),
    "reread-critic": partial(record, name="reread"),
    "trip-failed": partial(record, name="trip"),
    "slogan-killed": partial(record, name="slogan", commits=4),
}
