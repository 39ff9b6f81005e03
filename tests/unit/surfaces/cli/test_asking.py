import io
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from signoff import (
    Approval,
    Option,
    Outcome,
    Question,
    Questions,
    StepContext,
    StepDef,
    UserQuestion,
    Workflow,
)
from signoff.agents.base import ManualAgent
from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project
from signoff.app.settings.settings import Settings
from signoff.store.sqlite import MemoryStore
from signoff.surfaces.cli.asking import SHOWN_LINES, ask_all
from signoff.testing import FrozenClock

LONG = "\n".join(f"line {number}" for number in range(1, SHOWN_LINES + 11))


async def by_agent(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    reply = await ctx.ask("ann", LONG, about={"title": "Review against 'short'"})
    return Outcome.OK, {"answer": reply.text}


async def by_person(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"answer": (await ctx.wait(Question(LONG))).value}


@pytest.mark.parametrize(
    ("handler", "lines"),
    [
        (by_agent, ["Review against 'short'", "10 more lines: signoff inbox 1 …", "line 11"]),
        (by_person, ["line 1", "line 2", "line 3"]),
    ],
)
async def test_of_a_long_prompt_the_part_that_matters_is_shown(
    handler: Any,
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A critic's prompt ends with the artifact and the rules; a question begins with itself."""
    workflow = Workflow("asks", StepDef("only", handler=handler, next={Outcome.OK: None}))
    home = init_home(tmp_path, {}).home
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with Project(home, Settings(), MemoryStore(), tmp_path, FrozenClock()) as project:
        project.agents = {"ann": ManualAgent()}
        async with project.engine() as engine:
            await engine.start(workflow, name="one")

        asked = ask_all(project, project.store.items("one"))

    assert asked == (0, True)
    printed = capsys.readouterr()
    visible = [line for line in (printed.out + printed.err).splitlines() if line]
    assert visible[1:4] == lines


async def in_time(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    request = Approval("Ship?", "text", deadline=timedelta(hours=1), default=False)
    return Outcome.OK, {"answer": (await ctx.wait(request)).value}


class SlowPerson(io.StringIO):
    """Thinks until the deadline has passed."""

    def __init__(self, clock: FrozenClock) -> None:
        super().__init__("yes\n\n")
        self._clock = clock

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # as StringIO does
        self._clock.advance(3600)
        return super().readline(-1 if size is None else size)


@pytest.mark.parametrize(
    ("late", "message"),
    [(0, "deadline: "), (3600, "the deadline passed at ")],
    ids=["while they think", "before they look"],
)
async def test_nobody_is_asked_again_for_what_can_no_longer_be_answered(
    late: float,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Anything the user typed would be refused again and again."""
    workflow = Workflow("asks", StepDef("only", handler=in_time, next={Outcome.OK: None}))
    home, clock = init_home(tmp_path, {}).home, FrozenClock()
    monkeypatch.setattr(sys, "stdin", SlowPerson(clock))
    with Project(home, Settings(), MemoryStore(), tmp_path, clock) as project:
        async with project.engine() as engine:
            await engine.start(workflow, name="one")
        clock.advance(late)

        asked = ask_all(project, project.store.items("one"))

        assert asked == (0, False)
        assert project.store.item(1).state == "open"
    printed = capsys.readouterr().err
    assert message in printed
    assert "it counts as rejected" in printed


class PersonTwoAreAsked(io.StringIO):
    """Types an answer just after someone else has answered."""

    def __init__(self, project: Project) -> None:
        super().__init__("Bob\n" * 9)
        self._project = project

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # as StringIO does
        if self._project.store.item(1).state == "open":
            record_answer(self._project, 1, AnswerInput("Ann", by="ann"))
        return super().readline(-1 if size is None else size)


async def test_who_was_too_slow_is_told_so_once_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same prompt came back forever, whatever the user typed."""
    workflow = Workflow("asks", StepDef("only", handler=by_person, next={Outcome.OK: None}))
    home = init_home(tmp_path, {}).home
    with Project(home, Settings(), MemoryStore(), tmp_path, FrozenClock()) as project:
        monkeypatch.setattr(sys, "stdin", PersonTwoAreAsked(project))
        async with project.engine() as engine:
            await engine.start(workflow, name="one")

        asked = ask_all(project, project.store.items("one"))

    assert asked == (1, False)
    assert capsys.readouterr().err.count("request #1 is no longer open: answered by ann") == 1


async def about_a_file(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    answer = await ctx.wait(Approval("Approve plan.md?", path="plan.md", edits="accept"))
    return Outcome.OK, {"answer": answer.value}


@pytest.mark.parametrize(
    ("text", "shown"), [("the plan\n", "  │ the plan"), (None, "  it does not exist yet")]
)
async def test_a_file_is_named_and_shown_as_it_is_now(
    text: str | None,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The path can be given to an editor, and an unknown key explains the prompt."""
    workflow = Workflow("asks", StepDef("only", handler=about_a_file, next={Outcome.OK: None}))
    home = init_home(tmp_path, {}).home
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("x\nv\nl\n"))
    with Project(home, Settings(), MemoryStore(), tmp_path, FrozenClock()) as project:
        async with project.engine() as engine:
            await engine.start(workflow, name="one")
        file = project.folder("one") / "plan.md"
        if text is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

        ask_all(project, project.store.items("one"))

    lines = capsys.readouterr().err.splitlines()
    assert f"  file: {file.relative_to(tmp_path)} (you can edit it before you approve)" in lines
    assert shown in lines
    assert any("'x'" in line and "y, n, v or l" in line for line in lines)


async def two_questions(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    storage = UserQuestion(
        "Storage", "Where?", (Option("SQLite", description="a file"), Option("x"))
    )
    other = Option("other", requires_input=True)
    extras = UserQuestion("Extras", "What else?", (Option("logs"), other), multi_select=True)
    answer = await ctx.wait(Questions("Please decide.", [storage, extras]))
    return Outcome.OK, {"value": answer.value, "text": answer.text}


@pytest.mark.parametrize(
    ("typed", "answered", "state"),
    [
        ("7\nsqlite\n1,2\nmore of it\n", 1, {"Storage": "SQLite", "Extras": ["logs", "other"]}),
        ("1\nl\n", 0, None),
        ("later\n", 0, None),
    ],
)
async def test_several_questions_are_asked_in_one_go(
    typed: str,
    answered: int,
    state: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A slip is corrected at its question; leaving in the middle records nothing."""
    workflow = Workflow("asks", StepDef("only", handler=two_questions, next={Outcome.OK: None}))
    home = init_home(tmp_path, {}).home
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    with Project(home, Settings(), MemoryStore(), tmp_path, FrozenClock()) as project:
        async with project.engine() as engine:
            await engine.start(workflow, name="one")
            asked = ask_all(project, project.store.items("one"))
            result = await engine.resume("one", workflow)

    assert asked == (answered, False)
    assert result.state == ({"value": state, "text": "more of it"} if state else {})
    printed = capsys.readouterr().err
    for words in (
        "Please decide.",
        "Storage: Where?",
        "1  SQLite: a file",
        "choose 1-2, or [l]ater",
    ):
        assert words in printed
    assert ("'7' is not an option; choose one of: SQLite, x" in printed) is typed.startswith("7")
