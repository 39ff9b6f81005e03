"""Review flows, a contract workflow and a pair, recorded at several points by earlier versions.

`python -m tests.replay.notations 0.1.0` records what is not recorded yet. The definitions and the
answers must never change: they are part of what was recorded. The words of prompts may.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signoff.contracts import define_workflow
from signoff.core.workflow import Workflow
from signoff.errors import UnknownName, WriteFailed
from signoff.flows.compile import compile_flow
from signoff.notation import CompileContext
from signoff.pair.workflow import build
from signoff.runtime.engine import Engine
from signoff.runtime.result import RunResult
from signoff.store.rundir.files import RunFiles
from signoff.store.sqlite import SqliteStore
from signoff.testing import FrozenClock, ScriptedAgent
from tests.replay.record import Until, dump
from tests.unit.flows.harness import constraint, fails, flow, issue, passes, rules, step

NOTATIONS = Path(__file__).with_name("notations")


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
                step("refine", agent="author", mode="rewrite", validation_retries=1)
                # Recorded when the steps of a flow built in Python were not checked.
                .model_copy(update={"on_invalid": "ask"}),
            ],
            [constraint("clear"), constraint("short")],
            root=Path("project"),
        ),
        "review",
    ),
    {
        "author": ["Text.", "Text.", "Text.", "More text."],
        "critic": [passes(), "what?", "what?", passes(), passes()],
        "judge": ["hm", "hm", rules("REWRITE", bill="Say more."), rules("APPROVED")],
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
        "critic": [fails(issue("vague", evidence="Text.")), passes(), "what?", "what?", passes()],
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

POINTS: dict[str, dict[str, int]] = {
    "review-critic": {"answers": 0},
    "review-judge": {"answers": 1},
    "review-refine": {"answers": 2},
    "review-killed-4": {"answers": 0, "commits": 4},
    "reread-critic": {"answers": 0},
    "trip-failed": {"answers": 0},
    "trip-killed-3": {"answers": 0, "commits": 3},
    "trip-killed-5": {"answers": 0, "commits": 5},
    "slogan-killed-4": {"answers": 0, "commits": 4},
    "slogan-killed-8": {"answers": 0, "commits": 8},
}


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


def main() -> None:
    """Writes the recordings that do not exist yet."""
    for name, point in POINTS.items():
        target = NOTATIONS / f"{sys.argv[1]}-{name}.sql"
        if target.exists():
            continue
        story = STORIES[name.partition("-")[0]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "signoff.db"
            inner = SqliteStore(path)
            with suppress(WriteFailed):
                store = Until(inner, point.get("commits", -1))
                answers = story.answers[: point["answers"]]
                asyncio.run(tell(story, store, cast(story), answers, Path(folder)))
            inner.close()
            target.write_text(dump(path))
        print(target.name)


if __name__ == "__main__":
    main()
