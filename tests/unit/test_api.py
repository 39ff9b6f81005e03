import sys
from pathlib import Path

import pytest

import signoff
from signoff import Approval, Outcome, Question, Status, StepContext, StepDef, Workflow
from signoff.api import target_of
from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.settings.project import open_project
from signoff.core.errors import (
    InvalidAnswer,
    NameTaken,
    StaleApproval,
    UnknownName,
    UsageError,
)
from signoff.runtime.store_port import InboxItem
from signoff.testing import MemoryStore, ScriptedAgent


async def write(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"text": (await ctx.ask("writer", "write")).text}


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}


async def sign(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    await ctx.write("page.md", "a page")
    answer = await ctx.wait(Approval("Good?", "a page", path="page.md"))
    return Outcome.OK, {"signed": answer.approved}


WRITES = Workflow("writes", StepDef("only", handler=write, next={Outcome.OK: None}))
ASKS = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))
SIGNS = Workflow("signs", StepDef("only", handler=sign, next={Outcome.OK: None}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    return tmp_path


def test_a_workflow_runs_in_one_call() -> None:
    """It is the first thing a Python programmer tries."""
    result = signoff.run(
        WRITES, store=MemoryStore(), agents={"writer": ScriptedAgent(["a text"])}, name="one"
    )

    assert result.ok
    assert (result.run, result.state) == ("one", {"text": "a text"})


async def test_inside_a_running_loop_the_right_name_is_given() -> None:
    """A notebook has a loop running; asyncio's own message would not say what to do."""
    with pytest.raises(UsageError, match=r"await signoff\.run_async"):
        signoff.run(WRITES)
    with pytest.raises(UsageError, match=r"await signoff\.resume_async"):
        signoff.resume("one", WRITES)


def test_an_error_of_a_run_is_shown_alone() -> None:
    """The traceback began with an error that has nothing to do with it."""
    store = MemoryStore()
    workflow = Workflow("x", StepDef("a", next={Outcome.OK: None}))
    signoff.run(workflow, name="one", store=store)

    with pytest.raises(NameTaken) as taken:
        signoff.run(workflow, name="one", store=store)

    assert taken.value.__context__ is None


@pytest.mark.parametrize("target", ["request", "number", "run"])
def test_a_request_is_answered_in_one_call(target: str) -> None:
    """A program, or a test, should not have to know how answers are stored."""
    store = MemoryStore()
    (request,) = signoff.run(ASKS, store=store, name="one").inbox
    targets: dict[str, InboxItem | int | str]
    targets = {"request": request, "number": request.id, "run": "one"}

    done = signoff.answer(targets[target], "Bob", text="of course", by="ann", store=store)

    assert (done.state, done.answered_by) == ("answered", "ann")
    assert signoff.resume("one", ASKS, store=store).state == {"name": "Bob"}


def test_an_answer_is_checked_like_any_other() -> None:
    """From Python it is as easy to say the wrong thing as on the command line."""
    store = MemoryStore()
    (request,) = signoff.run(ASKS, store=store, name="one").inbox

    with pytest.raises(InvalidAnswer, match="must not be empty"):
        signoff.answer("one", "", store=store)
    with pytest.raises(StaleApproval):
        signoff.answer(request._replace(digest="0" * 64), "Bob", store=store)
    with pytest.raises(UnknownName):
        signoff.answer(99, "Bob", store=store)


def test_an_answer_reaches_the_projects_database_and_files(folder: Path) -> None:
    """The files and `signoff inbox` both show that the request is answered."""
    signoff.run(ASKS, name="one")
    questions = folder / ".signoff" / "runs" / "one" / "hitl" / "questions.json"
    assert questions.is_file()

    signoff.answer("one", "Bob")

    assert not questions.exists()
    assert signoff.resume("one", ASKS).state == {"name": "Bob"}


def test_a_file_changed_between_answer_and_resume_is_not_approved(folder: Path) -> None:
    """A program has no terminal where someone might notice."""
    request = signoff.run(SIGNS, name="one").inbox[0]
    signoff.answer(request, True)
    (folder / ".signoff" / "runs" / "one" / "page.md").write_text("another page")

    result = signoff.resume("one", SIGNS)

    assert result.status is Status.WAITING
    assert result.inbox[0].id != request.id


def test_without_a_store_the_run_lives_in_the_projects_home(folder: Path) -> None:
    """What was started from Python is listed, answered and resumed on the command line."""
    waiting = signoff.run(ASKS, name="one")

    assert waiting.status is Status.WAITING
    with open_project(folder, {"XDG_CONFIG_HOME": "/nowhere"}) as project:
        assert project.run("one").workflow == "asks"
        record_answer(project, 1, AnswerInput("Bob"))
    assert signoff.resume("one", ASKS).state == {"name": "Bob"}
    assert (folder / ".signoff" / "runs" / "one" / "state.json").is_file()


def test_the_target_of_a_workflow_is_its_module() -> None:
    """Then `signoff resume` finds it by itself."""
    assert target_of(WRITES, Path.cwd()) == f"{__name__}:WRITES"


def test_a_workflow_of_a_script_is_found_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python flow.py` has no module name to import it by."""
    main = type(sys)("__main__")
    main.__file__ = str(tmp_path / "flow.py")
    code = "def work(ctx): ...\n"
    exec(compile(code, main.__file__, "exec"), vars(main))
    flow = Workflow("x", StepDef("only", handler=main.work, next={Outcome.OK: None}))
    main.FLOW = flow  # type: ignore[attr-defined]  # a module built by hand
    monkeypatch.setitem(sys.modules, "__main__", main)

    assert target_of(flow, tmp_path) == "flow.py:FLOW"


def test_the_default_agent_follows_instructions_without_any_settings() -> None:
    """With a store of its own, a program has no settings that could name a worker."""
    step = StepDef("look", "Look", ["Look around."], next={Outcome.OK: None})
    agents = {"claude": ScriptedAgent(["Two cats."])}

    result = signoff.run(Workflow("looks", step), store=MemoryStore(), agents=agents)

    assert result.state == {"look": "Two cats."}
