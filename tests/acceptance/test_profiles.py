"""Sessions of profiles on the command line: by hand, automatic, and mixed."""

import json
from pathlib import Path

import pytest

from tests.acceptance.profile_project import CODE, FAIL, PASS, ProfileProject

AUTOMATIC = "  providers: {default: writer}\n  approval: {default_approver: skip}\n"


def test_a_session_by_hand_with_edits_at_every_gate(profile_project: ProfileProject) -> None:
    """A chat window and an editor are all that a user needs."""
    project = profile_project

    codes = [project.init().code]
    positions = [project.position]
    for name, text in (
        ("planning-prompt.md", "Plan two lines."),
        ("planning-response.md", "Two lines: one, two."),
        ("generation-prompt.md", "Write the two lines."),
        ("generation-response.md", CODE),
        ("review-prompt.md", "Review the two lines."),
        ("review-response.md", FAIL),
    ):
        project.session_file(f"iteration-1/{name}").write_text(text)
        codes.append(project.profile("approve").code)
        positions.append(project.position)
    for name, text in (
        ("revision-prompt.md", "Fix the two lines."),
        ("revision-response.md", CODE),
        ("review-prompt.md", "Review them again."),
        ("review-response.md", PASS),
    ):
        project.session_file(f"iteration-2/{name}").write_text(text)
        codes.append(project.profile("approve", "one").code)
        positions.append(project.position)

    assert codes == [*[10] * 10, 0]
    assert positions == [
        ("plan", "prompt", "in_progress", 1),
        ("plan", "response", "in_progress", 1),
        ("generate", "prompt", "in_progress", 1),
        ("generate", "response", "in_progress", 1),
        ("review", "prompt", "in_progress", 1),
        ("review", "response", "in_progress", 1),
        ("revise", "prompt", "in_progress", 2),
        ("revise", "response", "in_progress", 2),
        ("review", "prompt", "in_progress", 2),
        ("review", "response", "in_progress", 2),
        ("complete", None, "success", 2),
    ]
    assert project.session_file("plan.md").read_text() == "Two lines: one, two."
    assert project.session_file("iteration-1/planning-prompt.md").read_text() == "Plan two lines."
    assert [each["path"] for each in project.status()["artifacts"]] == [
        "iteration-1/code/note.md",
        "iteration-2/code/note.md",
    ]


@pytest.mark.both_stores
def test_a_session_with_a_judge_at_one_gate_and_a_human_at_another(
    profile_project: ProfileProject,
) -> None:
    """An explicit `manual` beats a default `skip`, and a judge's rejection asks again."""
    profile_project.settings(
        "  providers: {default: writer}\n"
        "  approval:\n"
        "    default_approver: skip\n"
        "    stages:\n"
        "      plan.response: {approver: judge, max_retries: 1}\n"
        "      generate.response: manual\n",
        writer=[
            ("plan.response", "a vague plan"),
            ("plan.response", "a better plan"),
            ("generate.response", CODE),
            ("review.response", PASS),
        ],
        judge=[
            ("plan.response", "DECISION: REJECTED\nFEEDBACK: too vague"),
            ("plan.response", "DECISION: APPROVED\nFEEDBACK: None"),
        ],
    )

    waiting = profile_project.init()
    position = profile_project.position
    done = profile_project.profile("approve")

    assert (waiting.code, position) == (10, ("generate", "response", "in_progress", 1))
    assert profile_project.session_file("plan.md").read_text() == "a better plan"
    assert (done.code, profile_project.position[0]) == (0, "complete")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["init", "note"], ["'topic': is missing", "as topic=VALUE"]),
        (["init", "note", "-c", "topic=a", "--name", "../x"], ["'../x'"]),
        (["init", "note", "-c", "lines=x", "-c", "tone=rude"], ["topic", "'lines'", "dry, warm"]),
        (["init", "note", "-c", "topic=a", "-c", "color=red"], ["color", "topic"]),
        (
            ["init", "note", "-c", "topic=a", "--planner", "cluade"],
            ["profile 'note'", "cluade", "claude"],
        ),
        (["init", "noet", "-c", "topic=a"], ["noet", "note", "jpa-mt", "python-module"]),
        (["approve"], ["no sessions"]),
        (["status", "two"], ["two"]),
        (["reject"], ["--feedback"]),
        (["status", "--project-dir", "nowhere"], ["nowhere"]),
    ],
)
def test_a_usage_error_explains_itself_and_leaves_nothing(
    profile_project: ProfileProject, arguments: list[str], words: list[str]
) -> None:
    """A failed `init` leaves no run, no folder and no inbox item."""
    refused = profile_project.profile(*arguments)

    assert refused.code == 2
    assert all(word in refused.err for word in words), refused.err
    assert profile_project.call("runs", "--json").out.strip() in ("", "[]")
    assert not (profile_project.folder / ".signoff/runs").exists() or not any(
        (profile_project.folder / ".signoff/runs").iterdir()
    )


def test_at_the_round_limit_the_setting_is_named_and_can_be_raised(
    profile_project: ProfileProject,
) -> None:
    """The verdict of the last review can no longer be overruled; a higher limit is the way."""
    replies = [
        *(("plan.response", "a plan"), ("generate.response", CODE), ("revise.response", CODE)),
        *(("review.response", FAIL), ("review.response", PASS)),
    ]
    profile_project.settings(f"{AUTOMATIC}  max_iterations: 1\n", writer=replies)
    ended = profile_project.init()

    refused = profile_project.profile("approve", "--complete")
    profile_project.settings(f"{AUTOMATIC}  max_iterations: 2\n", writer=replies)
    resumed = profile_project.call("resume", "one", "--adopt")

    assert (ended.code, refused.code) == (11, 2)
    for text in (ended.out, refused.err):
        assert "profiles.max_iterations" in text
        assert "signoff resume one --adopt" in text
    assert resumed.code == 0, resumed.err


def test_the_latest_session_is_meant_where_none_is_named(profile_project: ProfileProject) -> None:
    """Runs of other notations are not sessions, and not the latest session either."""
    profile_project.init()
    profile_project.profile("init", "note", "-c", "topic=the sky", "--name", "two")
    profile_project.write("hello.yaml", "steps: [{name: hi, command: [echo, hi]}]\ntype: hello\n")
    profile_project.call("run", "hello.yaml", "--name", "three")

    latest = profile_project.profile("status", "--json")
    cancelled = profile_project.call("cancel", json.loads(latest.out)["run"])

    assert (cancelled.code, "two" in cancelled.out) == (0, True)
    assert profile_project.status()["status"] == "cancelled"
    assert profile_project.status("one")["status"] == "in_progress"
    assert "not a session" in profile_project.profile("status", "three").err


def test_the_general_commands_work_on_sessions(profile_project: ProfileProject) -> None:
    """Sessions are runs: one inbox, one list, one way to resume."""
    started = profile_project.call("run", "note", "-i", "topic=the sea", "--name", "one")
    inbox = json.loads(profile_project.call("inbox", "--json").out)
    approved = profile_project.call("approve", "one", "--resume")
    profile_project.session_file("iteration-1/planning-response.md").write_text("a plan")
    recorded = profile_project.call("approve", "one")
    resumed = profile_project.call("resume", "one")
    shown = json.loads(profile_project.call("show", "one", "--json").out)
    cancelled = profile_project.call("cancel", "one")

    assert (started.code, approved.code, recorded.code, resumed.code) == (10, 10, 0, 10)
    assert [each["path"] for each in inbox] == ["iteration-1/planning-prompt.md"]
    assert shown["step"] == "generate.prompt"
    assert cancelled.code == 0


def test_a_command_of_a_profile_appears_in_the_group(profile_project: ProfileProject) -> None:
    """A profile may bring what its users need before a session."""
    helped = profile_project.profile("--help")
    topics = profile_project.profile("topics")
    unknown = profile_project.profile("topcis")

    assert "topics" in helped.out
    assert (topics.code, topics.out) == (0, "the sea, the sky\n")
    assert unknown.code == 2


def test_a_session_is_driven_from_another_folder(
    profile_project: ProfileProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Editors start programs in folders of their own."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    option = ["--project-dir", str(profile_project.folder)]
    started = profile_project.init(*option)
    status = profile_project.status(*option)

    assert started.code == 10
    assert "iteration-1/planning-prompt.md" in started.out
    assert profile_project.profile("approve", "one", *option).code == 10
    assert status["run"]["run"] == "one"
    assert Path.cwd() == elsewhere


SKIP_THE_PLAN = "  approval: {stages: {plan.response: skip}}\n"


@pytest.mark.parametrize(
    ("settings", "option"), [("", []), (SKIP_THE_PLAN, ["--adopt"])], ids=["same", "changed"]
)
def test_a_recorded_decision_is_used_by_the_next_approve(
    profile_project: ProfileProject, settings: str, option: list[str]
) -> None:
    """`signoff approve` without `--resume`, or a kill after it, must not strand a session."""
    profile_project.init()
    profile_project.call("approve", "one")
    if settings:
        profile_project.settings(settings)

    shown = profile_project.profile("status")
    rejected = profile_project.profile("reject", "-f", "no")
    plain = profile_project.profile("approve") if settings else None
    continued = profile_project.profile("approve", *option)

    assert "signoff resume one" in shown.out
    assert rejected.code == 2
    assert "signoff resume one" in rejected.err
    assert plain is None or (plain.code, "signoff resume one --adopt" in plain.err) == (1, True)
    assert continued.code == 10
    assert profile_project.position == ("plan", "response", "in_progress", 1)
