"""Runs of built-in notations, recorded by releases: an upgrade asks nothing again."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.context import StepContext
from signoff.core.effects import EffectKind, ProductPrompt
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Store
from signoff.testing import ScriptedAgent
from tests.replay.notations import STORIES, Story, cast, tell
from tests.replay.recordings import recordings_of, restore
from tests.run_stores import moved_here, new_address, open_address

EVERY = [path for name in STORIES for path in recordings_of(name)]


@pytest.fixture(params=EVERY, ids=lambda path: path.stem)
def recorded(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def story(recorded: Path) -> Story:
    return STORIES[recorded.stem.split("-")[1]]


@pytest.fixture
def store(recorded: Path, tmp_path: Path) -> Iterator[Store]:
    """A database as a release left it."""
    path = tmp_path / "signoff.db"
    restore(recorded, path)
    with closing(open_address(moved_here(path))) as store:
        yield store


async def test_a_recorded_run_continues_and_asks_nothing_again(
    store: Store, story: Story, tmp_path: Path
) -> None:
    """An upgrade that only rewords prompts must not strand a week's work, or pay for it twice."""
    done = _finished(store)
    agents = cast(story, done)
    left = {name: len(replies) - done[name] for name, replies in story.replies.items()}

    result = await tell(story, store, agents, story.answers[done["a human"] :], tmp_path)

    assert result.status is Status.COMPLETED, result.reason
    assert {name: len(agent.prompts) for name, agent in agents.items()} == left


def test_a_compiled_definition_is_the_same_to_every_version(store: Store, story: Story) -> None:
    """Users should not have to adopt a change that they did not make."""
    assert store.row("run").definition == story.workflow.digest


def _finished(store: Store) -> Counter[str]:
    """Returns how often each agent, or a human, has answered."""
    done: Counter[str] = Counter()
    asked: dict[str, str] = {}
    for row in store.journal(store.row("run").id):
        for event in map(ev.from_json, decode(row.events, store.blob)):
            match event:
                case ev.EffectStarted(kind=EffectKind.ASK, payload=dict(payload)):
                    asked[event.id] = payload["agent"]
                case ev.EffectStarted(kind=EffectKind.WAIT):
                    asked[event.id] = "a human"
                case ev.EffectFinished() if event.id in asked:
                    done[asked[event.id]] += 1
    return done


async def _wait_and_resume(first: Any, second: Any, store: Any) -> tuple[Any, ScriptedAgent]:
    """Starts a run that asks and waits, and resumes it with a handler that asks otherwise."""
    agent = ScriptedAgent().on("", "yes")

    def workflow(prompt: Any) -> Workflow:
        async def handler(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
            reply = await ctx.ask("claude", prompt)
            await ctx.wait(Question("Good?"))
            return Outcome.OK, {"text": reply.text}

        handler.definition = ["test", 1]  # type: ignore[attr-defined]  # as compiled handlers have it
        return Workflow("asks", StepDef("only", handler=handler, next={Outcome.OK: None}))

    async with Engine(store, agents={"claude": agent}) as engine:
        await engine.start(workflow(first), name="run")
        (item,) = store.items("run")
        store.answer(item.id, '{"value": "yes", "text": ""}', "ann", 1.0, item.digest)
        return await engine.resume("run", workflow(second)), agent


FORMATTED = ProductPrompt("Fix it.", ["a.md"], system="You edit.", schema={"type": "object"})


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (ProductPrompt("Mend it.", ["a.md"]), ProductPrompt("Fix it.", ["a.md"]), True),
        (ProductPrompt("Fix it.", ["a.md"]), ProductPrompt("Fix it.", ["b.md"]), False),
        (ProductPrompt("Mend it.", ["a.md"]), FORMATTED, True),
        ("Mend it.", "Fix it.", False),
    ],
    ids=[
        "reworded",
        "about something else",
        "with a system prompt and a schema",
        "a user's prompt",
    ],
)
async def test_a_recorded_reply_is_reused_when_only_the_product_changed_its_words(
    tmp_path: Path, first: Any, second: Any, same: bool
) -> None:
    """A user's handler that asks for something else on replay is still refused."""
    with closing(open_address(new_address(tmp_path))) as store:
        result, agent = await _wait_and_resume(first, second, store)

    assert result.status is (Status.COMPLETED if same else Status.FAILED)
    assert same or "not deterministic" in result.reason
    assert len(agent.prompts) == 1
