import json
import stat
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.outcome import Status
from signoff.core.requests import Approval, Question, Response
from signoff.core.run_state import RunState
from signoff.errors import UnknownName, UnsafePath, WriteFailed
from signoff.store.rundir.directory import RunDirectory
from signoff.store.rundir.files import RunFiles
from signoff.store.rundir.layout import AgentCall, EndView, Layout
from signoff.store.sqlite import MemoryStore
from tests.unit.store.rundir.story import BEGAN, Story, asked, document, tree


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def directory(tmp_path: Path, story: Story) -> RunDirectory:
    return RunDirectory(tmp_path, story.store)


def rebuilt(story: Story, path: Path) -> dict[str, bytes]:
    """Returns the directory as it is written from scratch."""
    RunDirectory(path, story.store).catch_up(story.name)
    return tree(path / story.name)


# What is shown


def test_state_begins_with_the_fields_that_all_notations_share(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Scripts read these fields whatever the workflow was written in."""
    story.begin(topic="tea").ask("ask#1", "write", "text").step("review", artifact="text")

    directory.catch_up("demo")

    state = document(tmp_path / "demo" / "state.json")
    head = ["run", "workflow", "status", "step", "iteration", "awaiting_human", "journal_head"]
    assert list(state)[:7] == head
    assert [state[key] for key in head] == ["demo", "essay", "running", "review", 1, False, 4]
    assert state["state"] == {"artifact": "text"}
    assert state["params"] == {"topic": "tea"}
    assert state["times"] == {"draft": 1, "review": 1}
    assert state["outcome"] == "ok"
    assert state["spend"] == {"calls": 1, "tokens": None, "usd": None, "seconds": 3.0}


def test_a_system_prompt_is_shown_above_the_prompt(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Otherwise half of what an agent received would be missing."""
    payload = {"agent": "claude", "prompt": "write", "system": "be brief"}
    story.begin().commit(ev.EffectStarted(EffectId("ask#1"), EffectKind.ASK, "x", payload))

    directory.catch_up("demo")

    prompt = tmp_path / "demo" / "iterations" / "1" / "prompt_draft_claude.txt"
    assert prompt.read_text() == "[system]\nbe brief\n\n[prompt]\nwrite"


def test_a_call_repeated_after_a_crash_keeps_its_prompt_file(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Later attempts do not repeat the prompt in the journal; its file must not become empty."""
    story.begin().commit(asked("ask#1", "write")).commit(asked("ask#1", "write", attempt=2))
    story.commit(ev.EffectFinished(EffectId("ask#1"), {"text": "done"}))

    directory.catch_up("demo")

    assert tree(tmp_path / "demo" / "iterations" / "1") == {
        "prompt_draft_claude.txt": b"write",
        "reply_draft_claude.txt": b"done",
    }


def test_every_finished_step_and_effect_is_one_line_of_the_thread(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Programs follow a run by this file alone."""
    command = ev.EffectStarted(
        EffectId("tests#1"), EffectKind.COMMAND, "x", {"argv": ["pytest", "-q"]}
    )
    story.begin().ask("ask#1", "write", "text").commit(command)
    story.commit(ev.EffectFinished(EffectId("tests#1"), {"code": 1, "stdout": "", "stderr": ""}))
    story.commit(asked("again#1", "more"))
    fault = {"type": "AgentAuth", "message": "not logged in"}
    story.commit(ev.EffectFinished(EffectId("again#1"), error=fault))
    story.commit(ev.EffectFinished(EffectId("now#1"), 1.5)).step("review")

    directory.catch_up("demo")

    lines = [json.loads(x) for x in (tmp_path / "demo" / "thread.jsonl").read_text().splitlines()]
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
    assert (tmp_path / "demo" / ask["reply_file"]).read_text() == "text"
    assert (command_line["command"], command_line["code"]) == (["pytest", "-q"], 1)
    assert (failed["error_type"], failed["error"]) == ("AgentAuth", "not logged in")
    assert "reply_file" not in failed
    assert (step["to"], step["times"]) == ("review", 1)
    assert len({x["id"] for x in lines}) == 4


def test_a_file_that_was_read_is_in_the_thread_with_its_digest(
    story: Story, directory: RunDirectory, tmp_path: Path
) -> None:
    """The text itself stays in the journal; the digest tells which version was read."""
    key = EffectId("read:a.md#1")
    reply = {"path": "a.md", "text": "secret plans", "digest": "abc"}
    story.begin().commit(ev.EffectStarted(key, EffectKind.READ, "x", {"path": "a.md"}))
    story.commit(ev.EffectFinished(key, reply))

    directory.catch_up(story.name)

    (line,) = (tmp_path / story.name / "thread.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert (entry["kind"], entry["path"], entry["digest"]) == ("read", "a.md", "abc")
    assert "secret plans" not in line


def test_an_ended_run_has_a_resolution_until_it_is_resumed(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """A run that reached its budget can be resumed; its resolution would then be wrong."""
    resolution = tmp_path / "demo" / "resolution.json"
    story.begin().ask("ask#1", "a", "b").end(Status.BUDGET, "$5 spent")
    directory.catch_up("demo")
    assert document(resolution) == {
        "timestamp": "2023-11-14T22:13:23.000Z",
        "reason": "$5 spent",
        "final_turn": 1,
        "summary": "budget at step 'draft' after 1 round and 1 call",
        "status": "budget",
    }

    story.commit(ev.RunResumed())
    directory.catch_up("demo")

    assert not resolution.exists()


@pytest.mark.parametrize("status", [Status.WAITING, Status.PARKED, Status.INTERRUPTED])
def test_a_waiting_run_has_no_resolution(
    tmp_path: Path, story: Story, directory: RunDirectory, status: Status
) -> None:
    """`test -f resolution.json` is how scripts see that a run is over."""
    story.begin().end(status)

    directory.catch_up("demo")

    assert not (tmp_path / "demo" / "resolution.json").exists()


def test_everything_is_readable_by_its_owner_only(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Prompts may hold what no other user of the machine should see."""
    story.begin().ask("ask#1", "a", "b").wait(Response("work"))

    directory.catch_up("demo")

    modes = {stat.S_IMODE(p.lstat().st_mode) for p in (tmp_path / "demo").rglob("*")}
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


def test_half_a_character_from_a_model_is_escaped(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """A reply that ends inside an emoji cannot be encoded, but must be shown."""
    story.begin().ask("ask#1", "a", "cut \ud83d").step("review", artifact="cut \ud83d")

    directory.catch_up("demo")

    assert document(tmp_path / "demo" / "state.json")["state"] == {"artifact": "cut \ud83d"}


# Catching up


def test_catching_up_in_small_steps_gives_the_same_bytes_as_all_at_once(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """What a directory shows must not depend on when it was last updated."""
    story.begin()
    directory.catch_up("demo")
    story.ask("ask#1", "first", "one")
    directory.catch_up("demo")
    story.write("final/a.md", "draft").step("review", artifact="one").write("final/a.md", "better")
    directory.catch_up("demo")
    story.answered(story.wait(Question("ok?")), "yes")
    directory.catch_up("demo")
    story.end()
    directory.catch_up("demo")

    assert tree(tmp_path / "demo") == rebuilt(story, tmp_path / "elsewhere")


class Unfinished(Layout):
    """Shows a text at every end but completion."""

    def end(self, state: RunState, description: Mapping[str, Any]) -> EndView:
        text = None if state.status is Status.COMPLETED else "best"
        return EndView("final/a.md", passed=False, label="", files={"final/a.md": text})


@pytest.mark.parametrize(
    ("found", "then"), [(None, "best"), ("draft", "best"), ("by the user", "by the user")]
)
def test_an_end_replaces_what_the_workflow_wrote_and_keeps_what_the_user_wrote(
    tmp_path: Path, story: Story, found: str | None, then: str
) -> None:
    """A process that died may have written a file without having recorded that."""
    directory = RunDirectory(tmp_path, story.store, layout_of=lambda _notation: Unfinished())
    payload = {"path": "final/a.md", "text": "draft"}
    story.begin().commit(ev.EffectStarted(EffectId("write#1"), EffectKind.WRITE, "x", payload))
    if found is not None:
        RunFiles(tmp_path).write("demo", "final/a.md", found)

    story.end(Status.CANCELLED)
    directory.catch_up("demo")

    assert (tmp_path / "demo/final/a.md").read_text() == then


def test_catching_up_twice_changes_nothing(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Many commands catch up; none may touch a file that another one reads."""
    story.begin().ask("ask#1", "a", "b").wait(Question("ok?"))
    directory.catch_up("demo")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "demo").rglob("*")}

    directory.catch_up("demo")
    RunDirectory(tmp_path, story.store).catch_up("demo")

    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "demo").rglob("*")} == before


def test_a_run_that_is_driven_shows_its_log_and_at_a_step_s_end_its_state(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """`tail -f live.log` and dashboards follow a run; all other files can wait until it rests."""
    story.begin().ask("ask#1", "a", "b")
    directory.follow("demo")
    story.ask("more#1", "c", "d")
    directory.follow("demo")
    folder = tmp_path / "demo"
    before = (folder / "thread.jsonl").read_bytes()

    story.step("review")
    directory.follow("demo")

    assert set(tree(folder)) == {"live.log", "state.json", "thread.jsonl"}
    assert (folder / "live.log").read_bytes() == rebuilt(story, tmp_path / "x")["live.log"]
    assert len(before.splitlines()) == 1
    lines = (folder / "thread.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["ask", "ask", "step"]
    assert document(folder / "state.json")["step"] == "review"
    assert not directory.is_current(story.store.row("demo"))


def test_a_process_that_is_killed_while_it_drives_a_run_leaves_a_directory_to_repair(
    tmp_path: Path, story: Story
) -> None:
    """`show` and `resume` have to leave a right directory, whatever the last process did."""
    first, second = (RunDirectory(tmp_path, story.store) for _ in range(2))
    story.begin().ask("ask#1", "a", "b").step("review")
    first.follow("demo")
    (tmp_path / "demo" / "live.log").write_bytes(b"half a line")

    second.catch_up("demo")

    assert tree(tmp_path / "demo") == rebuilt(story, tmp_path / "elsewhere")
    assert second.is_current(story.store.row("demo"))
    story.ask("ask#1", "c", "d")
    second.follow("demo")
    log = (tmp_path / "demo" / "live.log").read_bytes()
    assert log == rebuilt(story, tmp_path / "later")["live.log"]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"run": "demo"}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_state_file_is_rebuilt_from_the_journal(
    tmp_path: Path, story: Story, directory: RunDirectory, damage: bytes
) -> None:
    """An edited or damaged file must not lose or duplicate anything."""
    story.begin().ask("ask#1", "a", "b")
    directory.catch_up("demo")
    (tmp_path / "demo" / "state.json").write_bytes(damage)

    directory.catch_up("demo")

    assert tree(tmp_path / "demo") == rebuilt(story, tmp_path / "elsewhere")


@pytest.mark.parametrize("field", ["journal_head", "definition", "version"])
@pytest.mark.parametrize("value", [-1, 10**9, True, "7", None])
def test_a_forged_state_file_is_not_trusted(
    tmp_path: Path, story: Story, directory: RunDirectory, field: str, value: object
) -> None:
    """Editing it must not make the rest of the directory wrong."""
    story.begin().ask("ask#1", "a", "b")
    directory.catch_up("demo")
    state = document(tmp_path / "demo" / "state.json")
    (state if field in state else state["projection"])[field] = value
    (tmp_path / "demo" / "state.json").write_text(json.dumps(state))

    directory.catch_up("demo")

    assert tree(tmp_path / "demo") == rebuilt(story, tmp_path / "elsewhere")


@pytest.mark.parametrize("name", ["thread.jsonl", "live.log"])
@pytest.mark.parametrize("how", ["emptied", "deleted"])
def test_a_log_that_lost_lines_is_rebuilt(
    tmp_path: Path, story: Story, directory: RunDirectory, name: str, how: str
) -> None:
    """Lines appended to half a log would make it look complete."""
    story.begin().ask("ask#1", "a", "b")
    directory.catch_up("demo")
    log = tmp_path / "demo" / name
    log.write_bytes(b"") if how == "emptied" else log.unlink()
    story.step("review")

    directory.catch_up("demo")

    assert tree(tmp_path / "demo") == rebuilt(story, tmp_path / "elsewhere")


def test_a_prompt_file_emptied_by_a_power_cut_is_restored(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """These files are not synced, so they have to be checked later."""
    story.begin().ask("ask#1", "prompt", "reply").write("final/a.md", "text")
    directory.catch_up("demo")
    prompt = tmp_path / "demo" / "iterations" / "1" / "prompt_draft_claude.txt"
    prompt.write_bytes(b"")
    (tmp_path / "demo" / "final" / "a.md").unlink()

    RunDirectory(tmp_path, story.store).catch_up("demo")

    assert prompt.read_text() == "prompt"
    assert (tmp_path / "demo" / "final" / "a.md").read_text() == "text"


def test_a_changed_definition_is_shown_after_it_was_adopted(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """The rules in the directory must be the ones the run continues with."""
    story.begin()
    directory.catch_up("demo")
    steps = [{"id": "draft", "phase": "plan"}]
    description = json.dumps({"name": "changed", "notation": "python", "steps": steps})
    story.store.adopt(story.store.row("demo").id, "e" * 64, description)
    story.commit(ev.DefinitionAdopted("e" * 64)).ask("ask#1", "a", "b")

    directory.catch_up("demo")

    assert document(tmp_path / "demo" / "definition.json")["name"] == "changed"
    assert tree(tmp_path / "demo") == rebuilt(story, tmp_path / "elsewhere")


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


def test_files_that_were_in_the_folder_before_the_run_stay(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Users may prepare files in the run's folder before they start it."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "goal.yaml").write_text("goal: tea")
    story.begin()

    directory.catch_up("demo")

    assert (tmp_path / "demo" / "goal.yaml").read_text() == "goal: tea"


def test_a_directory_ahead_of_a_restored_database_is_rebuilt(tmp_path: Path) -> None:
    """After a backup is restored, the files must not show what no longer happened."""
    ahead = Story().begin().ask("ask#1", "a", "b").step("review")
    RunDirectory(tmp_path, ahead.store).catch_up("demo")
    restored = Story().begin()

    RunDirectory(tmp_path, restored.store).catch_up("demo")

    assert document(tmp_path / "demo" / "state.json")["step"] == "draft"
    assert (tmp_path / "demo" / "thread.jsonl").read_bytes() == b""


# Files the workflow wrote


def approved_and_edited(tmp_path: Path, story: Story) -> Path:
    """Returns a file that was approved and then edited."""
    request = Approval("Good?", "as approved", path="plan.md")
    item = story.begin().write("plan.md", "as approved").wait(request)
    RunDirectory(tmp_path, story.store).catch_up("demo")
    story.answered(item, True)
    path = tmp_path / "demo" / "plan.md"
    path.write_text("as edited")
    return path


def test_a_run_that_completes_shows_the_files_that_were_approved(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """A user who takes the result from there expects what was approved."""
    path = approved_and_edited(tmp_path, story)
    directory.catch_up("demo")
    meanwhile = path.read_text()

    story.step(None).end()
    directory.catch_up("demo")

    assert (meanwhile, path.read_text()) == ("as edited", "as approved")


def test_a_file_the_workflow_wrote_after_its_approval_stays(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """A step that adds the date to what was approved does so on purpose."""
    path = approved_and_edited(tmp_path, story)
    RunFiles(tmp_path).write("demo", "plan.md", "as published")

    story.write("plan.md", "as published").step(None).end()
    directory.catch_up("demo")

    assert path.read_text() == "as published"


def test_a_rejected_file_is_left_as_it_is(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Nothing was approved."""
    item = story.begin().write("plan.md", "draft").wait(Approval("Good?", "draft", path="plan.md"))
    directory.catch_up("demo")
    (tmp_path / "demo" / "plan.md").write_text("as edited")

    story.answered(item, False).step(None).end()
    directory.catch_up("demo")

    assert (tmp_path / "demo" / "plan.md").read_text() == "as edited"


def test_a_result_may_be_edited_after_the_run_has_ended(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """The run has ended; looking at it again must not undo their work."""
    path = approved_and_edited(tmp_path, story)
    story.step(None).end()
    directory.catch_up("demo")
    path.write_text("as used")

    RunDirectory(tmp_path, story.store).catch_up("demo")

    assert path.read_text() == "as used"


def test_a_link_planted_in_the_directory_is_not_followed(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """An agent that may edit files could otherwise make the engine write anywhere."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "iterations").symlink_to(tmp_path / "outside")
    story.begin().ask("ask#1", "a", "b")

    with pytest.raises(UnsafePath, match="'iterations' is a link"):
        directory.catch_up("demo")

    assert list((tmp_path / "outside").iterdir()) == []


def test_questions_are_not_written_through_a_link_either(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Questions are files like any other."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "hitl").symlink_to(tmp_path / "outside")
    story.begin().wait(Question("ok?"))

    with pytest.raises(UnsafePath, match="'hitl' is a link"):
        directory.catch_up("demo")

    assert list((tmp_path / "outside").iterdir()) == []


# Errors


def test_an_unknown_run_is_an_error_and_creates_no_folder(
    tmp_path: Path, directory: RunDirectory
) -> None:
    """A typo must not leave an empty run behind."""
    with pytest.raises(UnknownName):
        directory.catch_up("typo")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["..", "a/b", "/etc", "latest", "Latest", ".hidden", "C:x", ""])
def test_a_run_whose_name_is_not_a_folder_name_is_rejected(
    directory: RunDirectory, name: str
) -> None:
    """A name is a path too, and comes from outside."""
    with pytest.raises(UnsafePath):
        directory.catch_up(name)


def test_an_unwritable_root_is_reported_and_written_later(tmp_path: Path, story: Story) -> None:
    """A full or read-only disk costs a directory for a while, never the run."""
    root = tmp_path / "runs"
    root.write_text("in the way")
    directory = RunDirectory(root, story.store)
    story.begin().ask("ask#1", "a", "b")
    with pytest.raises(WriteFailed, match="cannot write"):
        directory.catch_up("demo")
    root.unlink()

    directory.catch_up("demo")

    assert tree(root / "demo") == rebuilt(story, tmp_path / "elsewhere")


# Questions


def test_an_open_question_is_shown_until_it_is_answered(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """A question that stays after its answer is answered twice."""
    item = story.begin().wait(Question("Which title?", question_id="title"))
    directory.catch_up("demo")
    questions = document(tmp_path / "demo" / "hitl" / "questions.json")
    assert questions["turn"] == 1
    assert questions["questions"][0]["agent"] == "draft"
    assert questions["questions"][0]["questions"][0]["id"] == "title"
    assert document(tmp_path / "demo" / "state.json")["awaiting_human"] is True

    story.answer(item, "Tea")
    directory.catch_up("demo")

    assert not (tmp_path / "demo" / "hitl" / "questions.json").exists()
    assert document(tmp_path / "demo" / "state.json")["awaiting_human"] is False


def test_an_open_request_for_a_response_has_a_prompt_file(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """Manual work is done by copying this file to wherever the work is done."""
    item = story.begin().wait(Response("Do this.", {"type": "object"}))
    directory.catch_up("demo")
    prompt = tmp_path / "demo" / "hitl" / f"{item.id}-prompt.md"
    assert prompt.read_text().startswith("Do this.\n\nAnswer with JSON that fits this schema:")

    story.answered(item, "{}")
    directory.catch_up("demo")

    assert not prompt.exists()


def test_questions_show_how_they_can_be_answered(
    tmp_path: Path, story: Story, directory: RunDirectory
) -> None:
    """A user who only sees this file must be able to answer."""
    story.begin().wait(Question("Ship?", ["yes", "no"]), "a#1")
    story.wait(Approval("Plan ok?", {"plan": "x"}, question_id="plan"), "b#1")
    story.wait(Question("Name?", deadline=timedelta(seconds=60), default="x"), "c#1")
    story.wait(Response("Work"), "d#1")

    directory.catch_up("demo")

    questions = document(tmp_path / "demo" / "hitl" / "questions.json")
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
