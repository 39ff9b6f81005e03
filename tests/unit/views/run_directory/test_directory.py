import json
import stat
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.errors import UnknownName, UnsafePath, WriteFailed
from signoff.core.outcome import Status
from signoff.core.requests import Approval, Question, Response
from signoff.core.run_state import RunState
from signoff.runtime.store_port import NewItem
from signoff.store.run_files import RunFiles
from signoff.store.run_layout import AgentCall, EndView, Layout
from signoff.store.sqlite import MemoryStore
from signoff.views.run_directory.directory import RunDirectory
from tests.unit.views.run_directory.story import BEGAN, Story, asked, document, tree


class Demo:
    """A run called `demo`, and the directory that shows it."""

    def __init__(self, root: Path, story: Story) -> None:
        self.root, self.story = root, story
        self.folder = root / "demo"
        self.directory = RunDirectory(root, story.store)

    def catch_up(self) -> None:
        self.directory.catch_up("demo")

    def document(self, name: str) -> Any:
        return document(self.folder / name)

    def rebuilt(self, name: str = "elsewhere") -> dict[str, bytes]:
        """Returns the directory as it is written from scratch."""
        return rebuilt(self.story, self.root / name)


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return Demo(tmp_path, Story())


def rebuilt(story: Story, path: Path) -> dict[str, bytes]:
    RunDirectory(path, story.store).catch_up(story.name)
    return tree(path / story.name)


# What is shown


def test_state_begins_with_the_fields_that_all_notations_share(demo: Demo) -> None:
    """Scripts read these fields whatever the workflow was written in."""
    demo.story.begin(topic="tea").ask("ask#1", "write", "text").step("review", artifact="text")

    demo.catch_up()

    state = demo.document("state.json")
    head = ["run", "workflow", "status", "step", "iteration", "awaiting_human", "journal_head"]
    assert list(state)[:7] == head
    assert [state[key] for key in head] == ["demo", "essay", "running", "review", 1, False, 4]
    assert state["state"] == {"artifact": "text"}
    assert state["params"] == {"topic": "tea"}
    assert state["times"] == {"draft": 1, "review": 1}
    assert state["outcome"] == "ok"
    assert state["spend"] == {"calls": 1, "tokens": None, "usd": None, "seconds": 3.0}


def test_a_system_prompt_is_shown_above_the_prompt(demo: Demo) -> None:
    """Otherwise half of what an agent received would be missing."""
    payload = {"agent": "claude", "prompt": "write", "system": "be brief"}
    demo.story.begin().commit(ev.EffectStarted(EffectId("ask#1"), EffectKind.ASK, "x", payload))

    demo.catch_up()

    prompt = demo.folder / "iterations" / "1" / "prompt_draft_claude.txt"
    assert prompt.read_text() == "[system]\nbe brief\n\n[prompt]\nwrite"


def test_a_call_repeated_after_a_crash_keeps_its_prompt_file(demo: Demo) -> None:
    """Later attempts do not repeat the prompt in the journal; its file must not become empty."""
    demo.story.begin().commit(asked("ask#1", "write")).commit(asked("ask#1", "write", attempt=2))
    demo.story.commit(ev.EffectFinished(EffectId("ask#1"), {"text": "done"}))

    demo.catch_up()

    assert tree(demo.folder / "iterations" / "1") == {
        "prompt_draft_claude.txt": b"write",
        "reply_draft_claude.txt": b"done",
    }


def test_every_finished_step_and_effect_is_one_line_of_the_thread(demo: Demo) -> None:
    """Programs follow a run by this file alone."""
    command = ev.EffectStarted(
        EffectId("tests#1"), EffectKind.COMMAND, "x", {"argv": ["pytest", "-q"]}
    )
    demo.story.begin().ask("ask#1", "write", "text").commit(command)
    demo.story.commit(
        ev.EffectFinished(EffectId("tests#1"), {"code": 1, "stdout": "", "stderr": ""})
    )
    demo.story.commit(asked("again#1", "more"))
    fault = {"type": "AgentAuth", "message": "not logged in"}
    demo.story.commit(ev.EffectFinished(EffectId("again#1"), error=fault))
    demo.story.commit(ev.EffectFinished(EffectId("now#1"), 1.5)).step("review")

    demo.catch_up()

    lines = [json.loads(x) for x in (demo.folder / "thread.jsonl").read_text().splitlines()]
    assert [(x["kind"], x["outcome"]) for x in lines] == [
        ("ask", "ok"),
        ("command", "ok"),
        ("ask", "error"),
        ("step", "ok"),
    ]
    ask, command_line, failed, step = lines
    assert {x["step_name"] for x in lines} == {"draft"}
    assert {x["phase"] for x in lines} == {"generate"}
    assert ask["ts"] == "2023-11-14T22:13:22.000Z"
    assert (ask["agent"], ask["seconds"], ask["usage"]) == ("claude", 1.0, {"tokens_in": 5})
    assert (demo.folder / ask["reply_file"]).read_text() == "text"
    assert (command_line["command"], command_line["code"]) == (["pytest", "-q"], 1)
    assert (failed["error_type"], failed["error"]) == ("AgentAuth", "not logged in")
    assert "reply_file" not in failed
    assert (step["to"], step["times"]) == ("review", 1)
    assert len({x["id"] for x in lines}) == 4


def test_a_file_that_was_read_is_in_the_thread_with_its_digest(demo: Demo) -> None:
    """The text itself stays in the journal; the digest tells which version was read."""
    key = EffectId("read:a.md#1")
    reply = {"path": "a.md", "text": "secret plans", "digest": "abc"}
    demo.story.begin().commit(ev.EffectStarted(key, EffectKind.READ, "x", {"path": "a.md"}))
    demo.story.commit(ev.EffectFinished(key, reply))

    demo.catch_up()

    (line,) = (demo.root / demo.story.name / "thread.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert (entry["kind"], entry["path"], entry["digest"]) == ("read", "a.md", "abc")
    assert "secret plans" not in line


def test_an_ended_run_has_a_resolution_until_it_is_resumed(demo: Demo) -> None:
    """A run that reached its budget can be resumed; its resolution would then be wrong."""
    resolution = demo.folder / "resolution.json"
    demo.story.begin().ask("ask#1", "a", "b").end(Status.BUDGET, "$5 spent")
    demo.catch_up()
    assert document(resolution) == {
        "timestamp": "2023-11-14T22:13:23.000Z",
        "reason": "$5 spent",
        "final_turn": 1,
        "summary": "budget at step 'draft' after 1 round and 1 call",
        "status": "budget",
    }

    demo.story.commit(ev.RunResumed())
    demo.catch_up()

    assert not resolution.exists()


@pytest.mark.parametrize("status", [Status.WAITING, Status.PARKED, Status.INTERRUPTED])
def test_a_waiting_run_has_no_resolution(demo: Demo, status: Status) -> None:
    """`test -f resolution.json` is how scripts see that a run is over."""
    demo.story.begin().end(status)

    demo.catch_up()

    assert not (demo.folder / "resolution.json").exists()


def test_everything_is_readable_by_its_owner_only(demo: Demo) -> None:
    """Prompts may hold what no other user of the machine should see."""
    demo.story.begin().ask("ask#1", "a", "b").wait(Response("work"))

    demo.catch_up()

    modes = {stat.S_IMODE(p.lstat().st_mode) for p in (demo.folder).rglob("*")}
    assert modes == {0o700, 0o600}


def test_latest_points_to_the_newest_run_even_when_an_old_one_is_rebuilt(tmp_path: Path) -> None:
    """`runs/latest` must not jump back because a user looked at an old run."""
    store = MemoryStore()
    Story(store, "old").begin()
    Story(store, "new").begin()
    directory = RunDirectory(tmp_path, store)
    directory.catch_up("new")

    directory.catch_up("old")

    assert document(tmp_path / "latest" / "state.json")["run"] == "new"


def test_a_notation_can_choose_the_file_names(tmp_path: Path) -> None:
    """Users look for the names in the notation's own documentation."""

    class Phased(Layout):
        def prompt(self, asked: AgentCall) -> str:
            return f"iteration-{asked.iteration}/{asked.phase}-prompt.md"

        def reply(self, asked: AgentCall) -> str:
            return f"iteration-{asked.iteration}/{asked.phase}-response.md"

    story = Story(notation="profiles").begin().ask("ask#1", "a", "b")

    RunDirectory(tmp_path, story.store, layout_of=lambda _notation: Phased()).catch_up("demo")

    assert (tmp_path / "demo" / "iteration-1" / "generate-response.md").read_text() == "b"


def test_half_a_character_from_a_model_is_escaped(demo: Demo) -> None:
    """A reply that ends inside an emoji cannot be encoded, but must be shown."""
    demo.story.begin().ask("ask#1", "a", "cut \ud83d").step("review", artifact="cut \ud83d")

    demo.catch_up()

    assert demo.document("state.json")["state"] == {"artifact": "cut \ud83d"}


# Catching up


def test_catching_up_in_small_steps_gives_the_same_bytes_as_all_at_once(demo: Demo) -> None:
    """What a directory shows must not depend on when it was last updated."""
    demo.story.begin()
    demo.catch_up()
    demo.story.ask("ask#1", "first", "one")
    demo.catch_up()
    demo.story.write("final/a.md", "draft").step("review", artifact="one").write(
        "final/a.md", "better"
    )
    demo.catch_up()
    demo.story.answered(demo.story.wait(Question("ok?")), "yes")
    demo.catch_up()
    demo.story.end()
    demo.catch_up()

    assert tree(demo.folder) == demo.rebuilt()


class Unfinished(Layout):
    """Shows a text at every end but completion."""

    def end(self, state: RunState, description: Mapping[str, Any]) -> EndView:
        text = None if state.status is Status.COMPLETED else "best"
        return EndView("final/a.md", passed=False, label="", files={"final/a.md": text})


@pytest.mark.parametrize(
    ("found", "then"), [(None, "best"), ("draft", "best"), ("by the user", "by the user")]
)
def test_an_end_replaces_what_the_workflow_wrote_and_keeps_what_the_user_wrote(
    demo: Demo, found: str | None, then: str
) -> None:
    """A process that died may have written a file without having recorded that."""
    directory = RunDirectory(demo.root, demo.story.store, layout_of=lambda _notation: Unfinished())
    payload = {"path": "final/a.md", "text": "draft"}
    demo.story.begin().commit(ev.EffectStarted(EffectId("write#1"), EffectKind.WRITE, "x", payload))
    if found is not None:
        RunFiles(demo.root).write("demo", "final/a.md", found)

    demo.story.end(Status.CANCELLED)
    directory.catch_up("demo")

    assert (demo.folder / "final/a.md").read_text() == then


def test_catching_up_twice_changes_nothing(demo: Demo) -> None:
    """Many commands catch up; none may touch a file that another one reads."""
    demo.story.begin().ask("ask#1", "a", "b").wait(Question("ok?"))
    demo.catch_up()
    before = {p: p.stat().st_mtime_ns for p in (demo.folder).rglob("*")}

    demo.catch_up()
    RunDirectory(demo.root, demo.story.store).catch_up("demo")

    assert {p: p.stat().st_mtime_ns for p in (demo.folder).rglob("*")} == before


def test_a_run_that_is_driven_shows_its_log_and_at_a_step_s_end_its_state(demo: Demo) -> None:
    """`tail -f live.log` and dashboards follow a run; all other files can wait until it rests."""
    demo.story.begin().ask("ask#1", "a", "b")
    demo.directory.follow("demo")
    demo.story.ask("more#1", "c", "d")
    demo.directory.follow("demo")
    folder = demo.folder
    before = (folder / "thread.jsonl").read_bytes()

    demo.story.step("review")
    demo.directory.follow("demo")

    assert set(tree(folder)) == {"live.log", "state.json", "thread.jsonl"}
    assert (folder / "live.log").read_bytes() == demo.rebuilt("x")["live.log"]
    assert len(before.splitlines()) == 1
    lines = (folder / "thread.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["ask", "ask", "step"]
    assert document(folder / "state.json")["step"] == "review"
    assert not demo.directory.is_current(demo.story.store.row("demo"))


def test_an_answer_is_shown_while_other_items_still_run(demo: Demo) -> None:
    """A step may work for hours; meanwhile nobody should answer the same question again."""
    question = Question("Which?", options=("a", "b"))
    form = question.to_json()
    key = EffectId("wait#1")
    began = demo.story.begin().state.updated_at
    opened = NewItem(key, question.kind, "Which?", json.dumps(form), "d", "draft", began, None)
    demo.story.commit(ev.EffectStarted(key, EffectKind.WAIT, "shown", form), opened=[opened])
    demo.directory.follow("demo")
    waiting = demo.document("state.json")["awaiting_human"]

    (item,) = demo.story.store.items("demo")
    demo.story.answer(item, "a")
    reply = {"value": "a", "text": "", "by": "ann", "at": 1.0}
    demo.story.commit(ev.EffectFinished(key, reply, item=item.id), used=[item.id])
    demo.directory.follow("demo")

    assert waiting
    assert not demo.document("state.json")["awaiting_human"]
    assert not (demo.folder / "hitl" / "questions.json").exists()


def test_a_process_that_is_killed_while_it_drives_a_run_leaves_a_directory_to_repair(
    demo: Demo,
) -> None:
    """`show` and `resume` have to leave a right directory, whatever the last process did."""
    first, second = (RunDirectory(demo.root, demo.story.store) for _ in range(2))
    demo.story.begin().ask("ask#1", "a", "b").step("review")
    first.follow("demo")
    (demo.folder / "live.log").write_bytes(b"half a line")

    second.catch_up("demo")

    assert tree(demo.folder) == demo.rebuilt()
    assert second.is_current(demo.story.store.row("demo"))
    demo.story.ask("ask#1", "c", "d")
    second.follow("demo")
    log = (demo.folder / "live.log").read_bytes()
    assert log == demo.rebuilt("later")["live.log"]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"run": "demo"}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_state_file_is_rebuilt_from_the_journal(demo: Demo, damage: bytes) -> None:
    """An edited or damaged file must not lose or duplicate anything."""
    demo.story.begin().ask("ask#1", "a", "b")
    demo.catch_up()
    (demo.folder / "state.json").write_bytes(damage)

    demo.catch_up()

    assert tree(demo.folder) == demo.rebuilt()


@pytest.mark.parametrize("field", ["journal_head", "definition", "version"])
@pytest.mark.parametrize("value", [-1, 10**9, True, "7", None])
def test_a_forged_state_file_is_not_trusted(demo: Demo, field: str, value: object) -> None:
    """Editing it must not make the rest of the directory wrong."""
    demo.story.begin().ask("ask#1", "a", "b")
    demo.catch_up()
    state = demo.document("state.json")
    (state if field in state else state["projection"])[field] = value
    (demo.folder / "state.json").write_text(json.dumps(state))

    demo.catch_up()

    assert tree(demo.folder) == demo.rebuilt()


@pytest.mark.parametrize("name", ["thread.jsonl", "live.log"])
@pytest.mark.parametrize("how", ["emptied", "deleted"])
def test_a_log_that_lost_lines_is_rebuilt(demo: Demo, name: str, how: str) -> None:
    """Lines appended to half a log would make it look complete."""
    demo.story.begin().ask("ask#1", "a", "b")
    demo.catch_up()
    log = demo.folder / name
    log.write_bytes(b"") if how == "emptied" else log.unlink()
    demo.story.step("review")

    demo.catch_up()

    assert tree(demo.folder) == demo.rebuilt()


def test_a_prompt_file_emptied_by_a_power_cut_is_restored(demo: Demo) -> None:
    """These files are not synced, so they have to be checked later."""
    demo.story.begin().ask("ask#1", "prompt", "reply").write("final/a.md", "text")
    demo.catch_up()
    prompt = demo.folder / "iterations" / "1" / "prompt_draft_claude.txt"
    prompt.write_bytes(b"")
    (demo.folder / "final" / "a.md").unlink()

    RunDirectory(demo.root, demo.story.store).catch_up("demo")

    assert prompt.read_text() == "prompt"
    assert (demo.folder / "final" / "a.md").read_text() == "text"


def test_a_changed_definition_is_shown_after_it_was_adopted(demo: Demo) -> None:
    """The rules in the directory must be the ones the run continues with."""
    demo.story.begin()
    demo.catch_up()
    steps = [{"id": "draft", "phase": "plan"}]
    description = json.dumps({"name": "changed", "notation": "python", "steps": steps})
    demo.story.store.adopt(demo.story.store.row("demo").id, "e" * 64, description)
    demo.story.commit(ev.DefinitionAdopted("e" * 64)).ask("ask#1", "a", "b")

    demo.catch_up()

    assert demo.document("definition.json")["name"] == "changed"
    assert tree(demo.folder) == demo.rebuilt()


def test_the_directory_of_an_earlier_run_of_the_same_name_is_renamed(tmp_path: Path) -> None:
    """With a new database, old answers and artifacts must not be mistaken for new ones."""
    old = Story(created_at=BEGAN).begin().ask("ask#1", "old", "old")
    RunDirectory(tmp_path, old.store).catch_up("demo")
    (tmp_path / "demo" / "hitl").mkdir()
    (tmp_path / "demo" / "hitl" / "answers.json").write_text("{}")
    new = Story(created_at=BEGAN + 1000).begin()

    RunDirectory(tmp_path, new.store).catch_up("demo")

    assert tree(tmp_path / "demo") == rebuilt(new, tmp_path / "elsewhere")
    (aside,) = tmp_path.glob("demo.old-*")
    assert (aside / "hitl" / "answers.json").exists()


def test_files_that_were_in_the_folder_before_the_run_stay(demo: Demo) -> None:
    """Users may prepare files in the run's folder before they start it."""
    (demo.folder).mkdir()
    (demo.folder / "goal.yaml").write_text("goal: tea")
    demo.story.begin()

    demo.catch_up()

    assert (demo.folder / "goal.yaml").read_text() == "goal: tea"


def test_a_directory_ahead_of_a_restored_database_is_rebuilt(tmp_path: Path) -> None:
    """After a backup is restored, the files must not show what no longer happened."""
    ahead = Story().begin().ask("ask#1", "a", "b").step("review")
    RunDirectory(tmp_path, ahead.store).catch_up("demo")
    restored = Story().begin()

    RunDirectory(tmp_path, restored.store).catch_up("demo")

    assert document(tmp_path / "demo" / "state.json")["step"] == "draft"
    assert (tmp_path / "demo" / "thread.jsonl").read_bytes() == b""


# Files the workflow wrote


def approved_and_edited(demo: Demo) -> Path:
    """Returns a file that was approved and then edited."""
    request = Approval("Good?", "as approved", path="plan.md")
    item = demo.story.begin().write("plan.md", "as approved").wait(request)
    RunDirectory(demo.root, demo.story.store).catch_up("demo")
    demo.story.answered(item, True)
    path = demo.folder / "plan.md"
    path.write_text("as edited")
    return path


def test_a_run_that_completes_shows_the_files_that_were_approved(demo: Demo) -> None:
    """A user who takes the result from there expects what was approved."""
    path = approved_and_edited(demo)
    demo.catch_up()
    meanwhile = path.read_text()

    demo.story.step(None).end()
    demo.catch_up()

    assert (meanwhile, path.read_text()) == ("as edited", "as approved")


def test_a_file_the_workflow_wrote_after_its_approval_stays(demo: Demo) -> None:
    """A step that adds the date to what was approved does so on purpose."""
    path = approved_and_edited(demo)
    RunFiles(demo.root).write("demo", "plan.md", "as published")

    demo.story.write("plan.md", "as published").step(None).end()
    demo.catch_up()

    assert path.read_text() == "as published"


def test_a_rejected_file_is_left_as_it_is(demo: Demo) -> None:
    """Nothing was approved."""
    item = (
        demo.story.begin()
        .write("plan.md", "draft")
        .wait(Approval("Good?", "draft", path="plan.md"))
    )
    demo.catch_up()
    (demo.folder / "plan.md").write_text("as edited")

    demo.story.answered(item, False).step(None).end()
    demo.catch_up()

    assert (demo.folder / "plan.md").read_text() == "as edited"


def test_a_result_may_be_edited_after_the_run_has_ended(demo: Demo) -> None:
    """The run has ended; looking at it again must not undo their work."""
    path = approved_and_edited(demo)
    demo.story.step(None).end()
    demo.catch_up()
    path.write_text("as used")

    RunDirectory(demo.root, demo.story.store).catch_up("demo")

    assert path.read_text() == "as used"


def test_a_link_planted_in_the_directory_is_not_followed(demo: Demo) -> None:
    """An agent that may edit files could otherwise make the engine write anywhere."""
    (demo.root / "outside").mkdir()
    (demo.folder).mkdir()
    (demo.folder / "iterations").symlink_to(demo.root / "outside")
    demo.story.begin().ask("ask#1", "a", "b")

    with pytest.raises(UnsafePath, match="'iterations' is a link"):
        demo.catch_up()

    assert list((demo.root / "outside").iterdir()) == []


def test_questions_are_not_written_through_a_link_either(demo: Demo) -> None:
    """Questions are files like any other."""
    (demo.root / "outside").mkdir()
    (demo.folder).mkdir()
    (demo.folder / "hitl").symlink_to(demo.root / "outside")
    demo.story.begin().wait(Question("ok?"))

    with pytest.raises(UnsafePath, match="'hitl' is a link"):
        demo.catch_up()

    assert list((demo.root / "outside").iterdir()) == []


# Errors


def test_an_unknown_run_is_an_error_and_creates_no_folder(demo: Demo) -> None:
    """A typo must not leave an empty run behind."""
    with pytest.raises(UnknownName):
        demo.directory.catch_up("typo")

    assert list(demo.root.iterdir()) == []


@pytest.mark.parametrize("name", ["..", "a/b", "/etc", "latest", "Latest", ".hidden", "C:x", ""])
def test_a_run_whose_name_is_not_a_folder_name_is_rejected(demo: Demo, name: str) -> None:
    """A name is a path too, and comes from outside."""
    with pytest.raises(UnsafePath):
        demo.directory.catch_up(name)


def test_an_unwritable_root_is_reported_and_written_later(demo: Demo) -> None:
    """A full or read-only disk costs a directory for a while, never the run."""
    root = demo.root / "runs"
    root.write_text("in the way")
    directory = RunDirectory(root, demo.story.store)
    demo.story.begin().ask("ask#1", "a", "b")
    with pytest.raises(WriteFailed, match="cannot write"):
        directory.catch_up("demo")
    root.unlink()

    directory.catch_up("demo")

    assert tree(root / "demo") == demo.rebuilt()


# Questions


def test_an_open_question_is_shown_until_it_is_answered(demo: Demo) -> None:
    """A question that stays after its answer is answered twice."""
    item = demo.story.begin().wait(Question("Which title?", question_id="title"))
    demo.catch_up()
    questions = document(demo.folder / "hitl" / "questions.json")
    assert questions["turn"] == 1
    assert questions["questions"][0]["agent"] == "draft"
    assert questions["questions"][0]["questions"][0]["id"] == "title"
    assert demo.document("state.json")["awaiting_human"] is True

    demo.story.answer(item, "Tea")
    demo.catch_up()

    assert not (demo.folder / "hitl" / "questions.json").exists()
    assert demo.document("state.json")["awaiting_human"] is False


def test_an_open_request_for_a_response_has_a_prompt_file(demo: Demo) -> None:
    """Manual work is done by copying this file to wherever the work is done."""
    item = demo.story.begin().wait(Response("Do this.", {"type": "object"}))
    demo.catch_up()
    prompt = demo.folder / "hitl" / f"{item.id}-prompt.md"
    assert prompt.read_text().startswith("Do this.\n\nAnswer with JSON that fits this schema:")

    demo.story.answered(item, "{}")
    demo.catch_up()

    assert not prompt.exists()


def test_questions_show_how_they_can_be_answered(demo: Demo) -> None:
    """A user who only sees this file must be able to answer."""
    demo.story.begin().wait(Question("Ship?", ["yes", "no"]), "a#1")
    demo.story.wait(Approval("Plan ok?", {"plan": "x"}, question_id="plan"), "b#1")
    demo.story.wait(Question("Name?", deadline=timedelta(seconds=60), default="x"), "c#1")
    demo.story.wait(Response("Work"), "d#1")

    demo.catch_up()

    questions = document(demo.folder / "hitl" / "questions.json")
    choice, approval, question, response = questions["questions"][0]["questions"]
    assert choice["options"] == ["yes", "no"]
    # Under its number, because only that says which content is approved.
    assert (approval["id"], approval["priority"]) == ("2", "critical")
    assert approval["shown"] == {"content": {"plan": "x"}}
    assert (question["required"], question["default"]) == (False, "x")
    assert question["deadline"] == "2023-11-14T22:14:24.000Z"
    assert response["response_file"] == "4-response.md"
    answers = questions["answer_format"]["answers"]
    assert [answer["question_id"] for answer in answers] == ["1", "2", "3", "4"]
