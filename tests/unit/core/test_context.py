from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from signoff.core.checked import CheckedCall
from signoff.core.context import FanOutCall, StepContext
from signoff.core.effects import Effect, EffectKind, OnCrash
from signoff.core.errors import UsageError
from signoff.core.requests import Question
from signoff.core.spend import Spend

NOON = 1_700_000_000.0


async def nothing() -> Any:
    return None


class RecordingPort:
    """Records what a context requests."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.fans: list[FanOutCall] = []
        self.parked: list[tuple[float, str]] = []
        self.messages: list[str] = []
        self.lines: list[tuple[str, str]] = []

    def perform(self, ctx: StepContext, effect: Effect) -> Awaitable[Any]:
        self.effects.append(effect)
        return nothing()

    def ask_checked(self, ctx: StepContext, call: CheckedCall[Any]) -> Awaitable[Any]:
        self.effects.append(call.effect)
        return nothing()

    def map(self, ctx: StepContext, fan: FanOutCall) -> Awaitable[list[Any]]:
        self.fans.append(fan)
        return nothing()

    def was_requested(self, ctx: StepContext, key: str) -> bool:
        return key == "replayed"

    def now(self, ctx: StepContext) -> float:
        return NOON

    def park(self, ctx: StepContext, until: float, key: str) -> Awaitable[None]:
        self.parked.append((until, key))
        return nothing()

    def random(self, ctx: StepContext) -> Random:
        return Random(7)

    def spend(self) -> Spend:
        return Spend()

    def progress(self, ctx: StepContext, message: str) -> None:
        self.messages.append(message)

    def log(self, ctx: StepContext, text: str) -> None:
        self.lines.append((ctx.scope, text))

    async def before_plain_code(self) -> None:
        """Does nothing; no code here blocks."""


@pytest.fixture
def port() -> RecordingPort:
    return RecordingPort()


@pytest.fixture
def ctx(port: RecordingPort) -> StepContext:
    return StepContext("draft", port=port)


async def test_an_ask_names_the_agent_and_what_it_is_asked(
    ctx: StepContext, port: RecordingPort
) -> None:
    """The payload is the request's identity on replay: nothing else may be in it."""
    await ctx.ask("claude", "hi")
    await ctx.ask("claude", "hi", key="b", model="m", schema={"type": "object"}, timeout=5, heat=1)

    assert port.effects == [
        Effect(EffectKind.ASK, "ask", {"agent": "claude", "prompt": "hi"}),
        Effect(
            EffectKind.ASK,
            "b",
            {
                "agent": "claude",
                "prompt": "hi",
                "model": "m",
                "schema": {"type": "object"},
                "options": {"heat": 1},
            },
            timeout=5,
        ),
    ]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, OnCrash.RERUN),
        ({"edit": True}, OnCrash.ASK),
        ({"edit": True, "on_crash": "rerun"}, OnCrash.RERUN),
        ({"on_crash": OnCrash.FAIL}, OnCrash.FAIL),
    ],
    ids=["default", "edits", "edits and says so", "fails"],
)
async def test_an_ask_that_edits_files_is_not_repeated_without_asking(
    ctx: StepContext, port: RecordingPort, options: dict[str, Any], rule: OnCrash
) -> None:
    """An edit that is applied one and a half times can be worse than none."""
    await ctx.ask("claude", "hi", **options)

    assert port.effects[0].on_crash is rule


def test_an_unknown_rule_for_crashes_is_refused(ctx: StepContext) -> None:
    """A misspelt one would silently be another."""
    with pytest.raises(ValueError, match="retry"):
        ctx.ask("claude", "hi", on_crash="retry")


async def test_a_command_contains_only_what_was_set(ctx: StepContext, port: RecordingPort) -> None:
    """And is not repeated without asking: a program can do anything."""
    await ctx.command(["make", 5])  # type: ignore[list-item]  # numbers are common in arguments
    await ctx.command(
        ["x"], key="k", cwd="a", stdin="", env={"A": "b"}, timeout=1, on_crash="rerun"
    )

    assert port.effects == [
        Effect(EffectKind.COMMAND, "command", {"argv": ["make", "5"]}, OnCrash.ASK),
        Effect(
            EffectKind.COMMAND,
            "k",
            {"argv": ["x"], "cwd": "a", "stdin": "", "env": {"A": "b"}},
            OnCrash.RERUN,
            1,
        ),
    ]


@pytest.mark.parametrize("argv", ["rm -rf x", [], ()])
def test_a_command_is_a_list_never_a_line(ctx: StepContext, argv: Any) -> None:
    """A line would need a shell, and a shell takes texts from models for commands."""
    with pytest.raises(UsageError, match="takes a list"):
        ctx.command(argv)


async def test_a_write_is_keyed_by_its_path(ctx: StepContext, port: RecordingPort) -> None:
    """Two files written at the same time are two effects."""
    await ctx.write("a/b.md", "text")
    await ctx.write("a.md", "text", key="mine")

    assert port.effects == [
        Effect(EffectKind.WRITE, "write:a/b.md", {"path": "a/b.md", "text": "text"}),
        Effect(EffectKind.WRITE, "mine", {"path": "a.md", "text": "text"}),
    ]


async def test_a_read_is_keyed_by_its_path(ctx: StepContext, port: RecordingPort) -> None:
    """A file is often read after it was written, which is another effect."""
    await ctx.read("a/b.md")
    await ctx.read("a.md", key="mine", missing_ok=True)

    assert port.effects == [
        Effect(EffectKind.READ, "read:a/b.md", {"path": "a/b.md"}),
        Effect(EffectKind.READ, "mine", {"path": "a.md", "missing_ok": True}),
    ]


async def test_a_run_can_be_parked_until_or_for(ctx: StepContext, port: RecordingPort) -> None:
    """`for` counts from the recorded time, so a replay waits for the same moment."""
    await ctx.park(datetime.fromtimestamp(NOON + 5, UTC))
    await ctx.park(timedelta(hours=1), key="later")

    assert port.parked == [(NOON + 5, "park"), (NOON + 3600, "later")]


@pytest.mark.parametrize(
    ("until", "problem"),
    [(datetime(2100, 1, 1, 9), "has no time zone"), ("5", "a timedelta or a datetime, not '5'")],  # noqa: DTZ001  # what is tested
    ids=["no zone", "no time"],
)
def test_a_run_is_not_parked_until_who_knows_when(
    ctx: StepContext, port: RecordingPort, until: Any, problem: str
) -> None:
    """Nine o'clock is another moment on the server that resumes the run than on a laptop."""
    with pytest.raises(UsageError, match=problem):
        ctx.park(until)

    assert port.parked == []


@pytest.mark.parametrize(
    "use",
    [
        lambda ctx: ctx.ask("a", "b"),
        lambda ctx: ctx.command(["a"]),
        lambda ctx: ctx.write("a", "b"),
        lambda ctx: ctx.read("a"),
        lambda ctx: ctx.wait(Question("?")),
        lambda ctx: ctx.map([], print),
        lambda ctx: ctx.park(timedelta(1)),
        lambda ctx: ctx.now(),
        lambda ctx: ctx.random(),
    ],
    ids=["ask", "command", "write", "read", "wait", "map", "park", "now", "random"],
)
def test_a_context_made_by_hand_says_how_to_get_effects(use: Callable[[StepContext], Any]) -> None:
    """A test of a handler with a bare context should not end in an AttributeError."""
    with pytest.raises(UsageError, match="built by hand"):
        use(StepContext("draft"))
