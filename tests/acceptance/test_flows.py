"""The documented flows, as they are written, with programs on PATH that answer for the vendors."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.acceptance.desk import (
    DRAFT,
    FINAL,
    Desk,
    finds,
    issue,
    mends,
    passes,
    rules,
    writes,
)

BILL = "Mend the spelling.\n"


def test_the_shortest_flow_repeats_until_its_judge_approves(desk: Desk) -> None:
    """Four lines are the first flow that users write; the second round starts with the author."""
    desk.example("minimal")
    desk.constraints("clear")
    desk.play(
        writes(times=1),
        writes(FINAL, contains="<<<BILL_OF_WORK"),
        finds("clear", issue(), contains=DRAFT),
        passes(),
        rules("REWRITE", bill=BILL, contains=DRAFT),
        rules("APPROVED"),
        mends(),
    )

    done = desk.run()

    assert done.code == 0, done.err
    assert desk.asked("step", "agent", "model") == [
        (step, "claude", None)
        for step in (
            *("generate", "critique", "adjudicate", "refine"),
            *("generate", "critique", "adjudicate"),
        )
    ]
    assert desk.read("final/artifact.md") == FINAL
    assert desk.load("resolution.json")["reason"] == "approved"


def test_a_flow_without_approval_ends_at_its_limit_with_its_best_version(desk: Desk) -> None:
    """Exit code 11 keeps `signoff run ... && deploy` safe, and the work is not lost."""
    desk.example("minimal")
    desk.constraints("clear")
    desk.play(
        writes(), finds("clear", issue()), rules("REWRITE", bill=BILL), mends("wide", "wide, wide")
    )

    done = desk.run()

    assert done.code == 11, done.err
    assert desk.asked("step").count("generate") == 3
    assert desk.read("final/artifact.md") == DRAFT
    assert "It is wrong." in desk.read("final/status.md")
    assert desk.load("resolution.json")["reason"] == "max_iterations"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The full configuration, run once: one round of work, then approval."""
    with pytest.MonkeyPatch.context() as patch:
        desk = Desk(tmp_path_factory.mktemp("full"), patch)
        play_full(desk)
        done = desk.run()
        assert done.code == 0, done.err
        yield desk


def play_full(desk: Desk) -> None:
    """Scripts the answers of all agents in the full configuration."""
    desk.example("full")
    desk.constraints(
        *("structure", "completeness", "style", "tone", "security"), folder=".arena/constraints"
    )
    low = issue("LOW", "wide", finding="It could be wider.")
    desk.play(
        writes(model="opus"),
        finds("structure", issue(id="structure-001"), contains=DRAFT),
        finds("style", issue("MEDIUM"), low, contains=DRAFT),
        passes(),
        rules(
            "REWRITE",
            {"issue_id": "structure-001", "status": "pursuing", "guidance": "Spell it right."},
            {"issue_id": "style-001", "status": "dismissed", "rationale": "The same."},
            bill=BILL,
            model="opus",
            contains=DRAFT,
        ),
        rules("APPROVED", model="opus"),
        mends(agent="claude"),
    )


def test_the_full_configuration_runs_as_documented(full: Desk) -> None:
    """Users copy the longest example of the documentation and expect it to work."""
    assert full.read("final/artifact.md") == FINAL
    review = {("critique", "structure", "claude"), ("critique", "completeness", "claude")}
    asked = full.asked("step", "constraint", "agent")
    assert asked[0] == ("generate", None, "claude")
    # Nobody named an agent for the structure, so routing decides: all three read it.
    structure = {(step, name, who) for step, name, who in asked[1:7] if step == "critique"}
    assert review <= structure
    assert {who for _, _, who in structure} == {"claude", "codex", "gemini"}
    assert asked[7:11] == [
        ("critique", "style", "gemini"),
        ("critique", "tone", "gemini"),
        ("adjudicate", None, "claude"),
        ("refine", None, "claude"),
    ]
    assert asked[-1] == ("adjudicate", None, "claude")
    assert "security" not in full.asked("constraint")


def test_the_run_directory_has_the_documented_files(full: Desk) -> None:
    """Scripts and users rely on these names."""
    assert {
        *("goal.yaml", "state.json", "thread.jsonl", "resolution.json", "live.log"),
        *("constraints/structure.yaml", "constraints/style.yaml"),
        *("iterations/1/artifact.md", "iterations/1/artifact_refined.md"),
        *("iterations/1/prompt_generate_claude.txt", "iterations/1/prompt_refine_claude.txt"),
        *("iterations/1/adjudication_judge.yaml", "iterations/2/adjudication_judge.yaml"),
        "iterations/1/critiques/prompt_structure_claude.txt",
        "iterations/1/critiques/structure-claude.json",
        "iterations/1/critiques/style-gemini.json",
        "iterations/2/critiques/tone-gemini.json",
        "final/artifact.md",
    } <= full.names
    assert "iterations/2/artifact.md" not in full.names
    assert full.read("iterations/1/artifact.md") == DRAFT
    assert full.read("iterations/1/artifact_refined.md") == FINAL
    yaml = YAML(typ="safe", pure=True)
    assert yaml.load(full.read("goal.yaml")) == {"goal": "Write about the sea."}
    assert yaml.load(full.read("constraints/style.yaml"))["priority"] == 3
    judged = yaml.load(full.read("iterations/1/adjudication_judge.yaml"))
    assert judged["termination"] == {"critical_pursuing": 0, "high_pursuing": 1}
    assert judged["bill_of_work"].strip() == BILL.strip()
    assert [each["status"] for each in judged["decisions"]] == ["pursuing", "dismissed"]
    style = full.load("iterations/1/critiques/style-gemini.json")
    assert (style["reviewer"], style["overall"], len(style["issues"])) == ("gemini", "FAIL", 2)
    assert "Mind structure." in full.read("iterations/1/prompt_generate_claude.txt")
    assert "Be good at" not in full.read("iterations/1/prompt_generate_claude.txt")


def test_the_log_has_a_line_for_each_piece_of_work(full: Desk) -> None:
    """Dashboards read thread.jsonl; its fields are documented."""
    first = [line for line in full.thread if line["iteration"] == 1]
    assert [line["phase"] for line in first] == [
        "generate",
        *["critique"] * 8,
        "adjudicate",
        "refine",
    ]
    assert len({line["id"] for line in full.thread}) == len(full.thread)
    assert all(line["ts"] for line in full.thread)
    assert fields(first[0]) == {
        "step_name": "draft",
        "agent": "claude",
        "role": "assistant",
        "artifact_path": "iterations/1/artifact.md",
    }
    (style,) = [line for line in first if line.get("constraint") == "style"]
    assert (style["step_name"], style["agent"]) == ("style_review", "gemini")
    assert (style["issues_count"], style["overall"]) == (2, "FAIL")
    judged = fields(first[-2])
    assert judged == {
        "step_name": "judge",
        "agent": "claude",
        "role": "assistant",
        "status": "REWRITE",
        "critical_pursuing": 0,
        "high_pursuing": 1,
    }
    assert (first[-1]["mode"], first[-1]["step_name"]) == ("edit", "fix")
    assert first[-1]["artifact_path"] == "iterations/1/artifact_refined.md"


def fields(line: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a line that not all lines have."""
    common = ("id", "ts", "iteration", "phase")
    return {key: value for key, value in line.items() if key not in common}


def test_the_state_has_the_current_step_of_a_run(full: Desk) -> None:
    """state.json is what other programs poll."""
    state = full.load("state.json")
    assert state["awaiting_human"] is False
    assert (state["status"], state["iteration"]) == ("completed", 2)
    assert state["artifact"] == FINAL
    assert set(state["critiques_by_step"]) == {"structure_review", "style_review"}
    assert state["unadjudicated_critiques"] == []
    assert state["last_adjudication"]["status"] == "APPROVED"


def test_the_judge_never_sees_what_is_ignored(full: Desk) -> None:
    """A LOW finding is logged; it must not cost a round."""
    asked = full.read("iterations/1/prompt_adjudicate_claude.txt")
    assert "It is wrong." in asked
    assert "It could be wider." not in asked
    assert "It could be wider." in full.read("iterations/1/critiques/style-gemini.json")


def safety_first(desk: Desk) -> None:
    """Runs the safety-first example: a critical finding of the first constraint."""
    desk.example("safety_first")
    desk.constraints("safety", "legal", "accuracy", "completeness", "style")
    desk.play(
        writes(model="opus"),
        finds("safety", issue("CRITICAL"), contains=DRAFT),
        passes(),
        rules("REWRITE", bill=BILL, contains=DRAFT),
        rules("APPROVED"),
        mends(),
    )


def test_a_critical_finding_goes_straight_to_a_human(desk: Desk) -> None:
    """The safety gate exists so that nothing else happens before a human has looked."""
    safety_first(desk)

    done = desk.run()

    assert done.code == 10, done.err
    assert "signoff answer" in done.out + done.err
    assert desk.asked("step", "constraint") == [("generate", None), ("critique", "safety")]
    state = desk.load("state.json")
    assert (state["awaiting_human"], state["status"]) == (True, "waiting")
    assert (state["iteration"], state["step"], state["step_index"]) == (1, "safety_gate", 1)
    read = desk.load("iterations/1/critiques/safety-claude.json")
    assert [each["behavior"] for each in read["issues"]] == ["escalate"]
    asked = desk.load("hitl/questions.json")
    (question,) = [each for group in asked["questions"] for each in group["questions"]]
    assert question["id"] == "escalate"
    assert "It is wrong." in question["question"]
    assert "The see" in question["question"]
    assert desk.here("resume", "one").code == 10
    assert len(desk.calls) == 2


def test_an_answered_escalation_continues_with_the_next_step(desk: Desk) -> None:
    """The critique that escalated is not paid for again, and the answer reaches the judge."""
    safety_first(desk)
    desk.run()

    done = desk.here("answer", "one", "Say sea, not see.", "--resume")

    assert done.code == 0, done.err
    assert set(desk.asked("constraint")[2:5]) == {"accuracy", "completeness", "style"}
    assert desk.asked("step")[5:7] == ["adjudicate", "refine"]
    for prompt in ("prompt_adjudicate_claude.txt", "prompt_refine_claude.txt"):
        assert "Say sea, not see." in desk.read(f"iterations/1/{prompt}")
    assert desk.read("final/artifact.md") == FINAL


def test_an_escalation_can_be_answered_by_a_file(desk: Desk) -> None:
    """Other programs answer with answers.json; it is used once and then renamed."""
    safety_first(desk)
    desk.run()
    answers = '{"answers": [{"question_id": "escalate", "answer": "Say sea, not see."}]}'
    desk.write(".signoff/runs/one/hitl/answers.json", answers)

    done = desk.here("resume", "one")

    assert done.code == 0, done.err
    assert "Say sea, not see." in desk.read("iterations/1/prompt_refine_claude.txt")
    assert "hitl/answers.json" not in desk.names
    (processed,) = [name for name in desk.names if name.endswith(".processed.json")]
    assert desk.read(processed) == answers


def test_every_command_about_a_waiting_flow_supports_json(desk: Desk) -> None:
    """Other programs drive flows; a line of prose on stdout would break them."""
    safety_first(desk)

    run = desk.run("--json")
    outputs = {
        command: desk.here(*command.split(), "--json").json
        for command in ("runs", "show one", "inbox", "logs one")
    }
    answered = desk.here("answer", "one", "Say sea.", "--json")
    resumed = desk.here("resume", "one", "--json")

    assert (run.code, run.json["status"], run.json["exit_code"]) == (10, "waiting", 10)
    (asked,) = run.json["inbox"]
    assert asked["question_id"] == "escalate"
    assert outputs["inbox"] == outputs["show one"]["inbox"] == run.json["inbox"]
    assert outputs["runs"][0]["run"] == "one"
    assert outputs["logs one"]
    assert answered.json
    assert (resumed.code, resumed.json["status"]) == (0, "completed")
    assert [each["iteration"] for each in resumed.json["rounds"]] == [1, 2]


def test_an_answer_to_a_question_never_asked_changes_nothing(desk: Desk) -> None:
    """A file for another run must neither resume this one nor disappear."""
    safety_first(desk)
    desk.run()
    answers = '{"answers": [{"question_id": "thrashing", "answer": "go on"}]}'
    desk.write(".signoff/runs/one/hitl/answers.json", answers)

    done = desk.here("resume", "one")

    assert done.code == 10
    assert "thrashing" in done.err
    assert len(desk.calls) == 2
    assert desk.read("hitl/answers.json") == answers


def test_each_step_uses_the_model_that_it_names(desk: Desk) -> None:
    """The multi-model example exists to spend money where it counts."""
    desk.example("multi_model")
    desk.constraints("clear", "short")
    desk.play(
        writes(model="opus", times=1),
        writes(FINAL, model="opus", contains="<<<BILL_OF_WORK"),
        finds("clear", issue(), agent="gemini", contains=DRAFT),
        passes(agent="gemini"),
        rules("REWRITE", bill=BILL, model="opus", contains=DRAFT),
        rules("APPROVED", model="opus"),
        mends(model="sonnet"),
    )

    done = desk.run()

    assert done.code == 0, done.err
    models = {(step, agent): model for step, agent, model in desk.asked("step", "agent", "model")}
    assert models[("generate", "claude")] == models[("adjudicate", "claude")] == "opus"
    assert models[("refine", "claude")] == "sonnet"
    assert ("critique", "gemini") in models
    assert desk.asked("step").count("critique") == 4


def test_two_passes_are_judged_separately(desk: Desk) -> None:
    """Approval of the structure ends the first pass, not the run."""
    desk.example("two_pass")
    desk.constraints("structure", "accuracy", "style", "tone")
    desk.play(
        writes(),
        finds("style", issue(), contains=DRAFT),
        passes(),
        rules("REWRITE", bill=BILL, contains="style, reviewed by claude: FAIL"),
        rules("APPROVED"),
        mends(),
    )

    done = desk.run()

    assert done.code == 0, done.err
    steps = [line["step_name"] for line in desk.thread]
    assert list(dict.fromkeys(steps)) == [
        *("draft", "structure_review", "structure_judge", "style_review", "final_judge"),
        "style_fix",
    ]
    assert "structure, reviewed by" in desk.read("iterations/1/prompt_adjudicate_claude.txt")
    assert desk.load("state.json")["iteration"] == 2
    assert desk.asked("constraint").count("structure") == 1
    assert desk.asked("constraint").count("style") == 2
    assert desk.read("final/artifact.md") == FINAL


def test_every_program_gets_its_prompt_on_its_standard_input(full: Desk) -> None:
    """The run directory contains each prompt word for word."""
    digests = set(full.asked("prompt"))
    written = {
        hashlib.sha256(full.read(name).encode()).hexdigest()[:16]
        for name in full.names
        if "/prompt_" in name
    }
    assert digests <= written
