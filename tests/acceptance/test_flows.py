"""The documented flows, unchanged, with stubs of the vendors' programs."""

from collections.abc import Iterator
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.acceptance import flow_project as play
from tests.acceptance.flow_project import DRAFT, FINAL, FlowProject
from tests.acceptance.forked_program import ForkedProgram

BILL = "Fix the spelling.\n"


@pytest.mark.parametrize("flow", ["minimal", "plain_loop"])
def test_the_shortest_flow_repeats_until_its_judge_approves(
    flow_project: FlowProject, flow: str
) -> None:
    """A user's first flow; the second iteration starts with the author."""
    flow_project.copy_flow(flow)
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(times=1),
        play.author_writes(FINAL, contains="<<<BILL_OF_WORK"),
        play.critic_finds("clear", play.issue(), contains=DRAFT),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill=BILL, contains=DRAFT),
        play.judge_decides("APPROVED"),
        play.editor_replaces(),
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    assert flow_project.call_fields("step", "agent", "model") == [
        (step, "claude", None)
        for step in (
            *("generate", "critique", "adjudicate", "refine"),
            # Nothing is left to decide, so the judge is not asked again.
            *("generate", "critique"),
        )
    ]
    assert flow_project.read("final/artifact.md") == FINAL
    resolution = flow_project.load("resolution.json")
    assert (resolution["reason"], resolution["decided_by"]) == ("passed", "policy")


def test_a_flow_that_is_never_approved_ends_at_its_limit_with_its_best_version(
    flow_project: FlowProject,
) -> None:
    """Exit code 11 keeps `signoff run ... && deploy` safe, and the work is not lost."""
    flow_project.copy_flow("minimal")
    flow_project.constraints("clear")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("clear", play.issue()),
        play.judge_decides("REWRITE", bill=BILL),
        play.editor_replaces("wide", "wide, wide"),
    )

    done = flow_project.run()

    assert done.code == 11, done.err
    assert flow_project.call_fields("step").count("generate") == 3
    assert flow_project.read("final/artifact.md") == DRAFT
    assert "It is wrong." in flow_project.read("final/status.md")
    assert flow_project.load("resolution.json")["reason"] == "max_iterations"


@pytest.fixture(scope="module")
def full(
    tmp_path_factory: pytest.TempPathFactory, command_server: ForkedProgram
) -> Iterator[FlowProject]:
    """The full configuration after one run: one iteration of changes, then approval."""
    with pytest.MonkeyPatch.context() as patch:
        flow_project = FlowProject(tmp_path_factory.mktemp("full"), command_server, patch)
        script_full(flow_project)
        done = flow_project.run()
        assert done.code == 0, done.err
        yield flow_project


def script_full(flow_project: FlowProject) -> None:
    """Scripts every agent of the full configuration."""
    flow_project.copy_flow("full")
    flow_project.constraints(
        *("structure", "completeness", "style", "tone", "security"), folder=".arena/constraints"
    )
    low = play.issue("LOW", "wide", finding="It could be wider.")
    flow_project.script(
        play.author_writes(model="opus"),
        play.critic_finds("structure", play.issue(id="structure-001"), contains=DRAFT),
        play.critic_finds("style", play.issue("MEDIUM"), low, contains=DRAFT),
        play.critics_pass(),
        play.judge_decides(
            "REWRITE",
            {"issue_id": "structure-001", "status": "pursuing", "guidance": "Spell it right."},
            {"issue_id": "style-001", "status": "dismissed", "rationale": "The same."},
            bill=BILL,
            model="opus",
            contains=DRAFT,
        ),
        play.judge_decides("APPROVED", model="opus"),
        play.editor_replaces(agent="claude"),
    )


def test_the_full_configuration_runs_as_documented(full: FlowProject) -> None:
    """Users copy the longest example of the documentation."""
    assert full.read("final/artifact.md") == FINAL
    review = {("critique", "structure", "claude"), ("critique", "completeness", "claude")}
    asked = full.call_fields("step", "constraint", "agent")
    assert asked[0] == ("generate", None, "claude")
    # No agent is named for the structure, so routing decides: all three review it.
    structure = {(step, name, who) for step, name, who in asked[1:7] if step == "critique"}
    assert review <= structure
    assert {who for _, _, who in structure} == {"claude", "codex", "gemini"}
    assert asked[7:11] == [
        ("critique", "style", "gemini"),
        ("critique", "tone", "gemini"),
        ("adjudicate", None, "claude"),
        ("refine", None, "claude"),
    ]
    # The second round has no findings, so nothing is left for the judge to decide.
    assert asked[-1] == ("critique", "tone", "gemini")
    assert "security" not in full.call_fields("constraint")


def test_the_run_directory_has_the_documented_files(full: FlowProject) -> None:
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


def test_the_log_has_a_line_for_each_call(full: FlowProject) -> None:
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


def test_state_json_has_the_status_of_the_run(full: FlowProject) -> None:
    """Other programs poll state.json."""
    state = full.load("state.json")
    assert state["awaiting_human"] is False
    assert (state["status"], state["iteration"]) == ("completed", 2)
    assert state["artifact"] == FINAL
    assert set(state["critiques_by_step"]) == {"structure_review", "style_review"}
    assert state["unadjudicated_critiques"] == []
    assert state["last_adjudication"]["status"] == "APPROVED"


def test_the_judge_does_not_see_ignored_findings(full: FlowProject) -> None:
    """A LOW finding is logged, but must not cause another iteration."""
    asked = full.read("iterations/1/prompt_adjudicate_claude.txt")
    assert "It is wrong." in asked
    assert "It could be wider." not in asked
    assert "It could be wider." in full.read("iterations/1/critiques/style-gemini.json")


def safety_first(flow_project: FlowProject) -> None:
    """Scripts the safety-first example: a critical finding for the first constraint."""
    flow_project.copy_flow("safety_first")
    flow_project.constraints("safety", "legal", "accuracy", "completeness", "style")
    flow_project.script(
        play.author_writes(model="opus"),
        play.critic_finds("safety", play.issue("CRITICAL"), contains=DRAFT),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill=BILL, contains=DRAFT),
        play.judge_decides("APPROVED"),
        play.editor_replaces(),
    )


def test_a_critical_finding_is_escalated_to_a_human_at_once(flow_project: FlowProject) -> None:
    """With a safety gate, nothing else happens before a human has decided."""
    safety_first(flow_project)

    done = flow_project.run()

    assert done.code == 10, done.err
    assert "signoff answer" in done.out + done.err
    assert flow_project.call_fields("step", "constraint") == [
        ("generate", None),
        ("critique", "safety"),
    ]
    state = flow_project.load("state.json")
    assert (state["awaiting_human"], state["status"]) == (True, "waiting")
    assert (state["iteration"], state["step"], state["step_index"]) == (1, "safety_gate", 1)
    read = flow_project.load("iterations/1/critiques/safety-claude.json")
    assert [each["behavior"] for each in read["issues"]] == ["escalate"]
    asked = flow_project.load("hitl/questions.json")
    (question,) = [each for group in asked["questions"] for each in group["questions"]]
    assert question["id"] == "escalate"
    assert "It is wrong." in question["question"]
    assert "The see" in question["question"]
    assert flow_project.call("resume", "one").code == 10
    assert len(flow_project.calls) == 2


@pytest.mark.both_stores
def test_an_answered_escalation_continues_with_the_next_step(flow_project: FlowProject) -> None:
    """The critique is not repeated, and the answer reaches the judge."""
    safety_first(flow_project)
    flow_project.run()

    done = flow_project.call("answer", "one", "Say sea, not see.", "--resume")

    assert done.code == 0, done.err
    assert set(flow_project.call_fields("constraint")[2:5]) == {"accuracy", "completeness", "style"}
    assert flow_project.call_fields("step")[5:7] == ["adjudicate", "refine"]
    for prompt in ("prompt_adjudicate_claude.txt", "prompt_refine_claude.txt"):
        assert "Say sea, not see." in flow_project.read(f"iterations/1/{prompt}")
    assert flow_project.read("final/artifact.md") == FINAL


def test_each_step_uses_the_model_it_names(flow_project: FlowProject) -> None:
    """The multi-model example saves money by using cheaper models."""
    flow_project.copy_flow("multi_model")
    flow_project.constraints("clear", "short")
    flow_project.script(
        play.author_writes(model="opus", times=1),
        play.author_writes(FINAL, model="opus", contains="<<<BILL_OF_WORK"),
        play.critic_finds("clear", play.issue(), agent="gemini", contains=DRAFT),
        play.critics_pass(agent="gemini"),
        play.judge_decides("REWRITE", bill=BILL, model="opus", contains=DRAFT),
        play.judge_decides("APPROVED", model="opus"),
        play.editor_replaces(model="sonnet"),
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    models = {
        (step, agent): model
        for step, agent, model in flow_project.call_fields("step", "agent", "model")
    }
    assert models[("generate", "claude")] == models[("adjudicate", "claude")] == "opus"
    assert models[("refine", "claude")] == "sonnet"
    assert ("critique", "gemini") in models
    assert flow_project.call_fields("step").count("critique") == 4


def test_two_passes_are_judged_separately(flow_project: FlowProject) -> None:
    """Approval of the structure ends the first pass, not the run."""
    flow_project.copy_flow("two_pass")
    flow_project.constraints("structure", "accuracy", "style", "tone")
    flow_project.script(
        play.author_writes(),
        play.critic_finds("structure", play.issue("MEDIUM"), contains=DRAFT),
        play.critic_finds("style", play.issue(), contains=DRAFT),
        play.critics_pass(),
        play.judge_decides("REWRITE", bill=BILL, contains="style, reviewed by claude: FAIL"),
        play.judge_decides("APPROVED"),
        play.editor_replaces(),
    )

    done = flow_project.run()

    assert done.code == 0, done.err
    steps = [line["step_name"] for line in flow_project.thread]
    assert list(dict.fromkeys(steps)) == [
        *("draft", "structure_review", "structure_judge", "style_review", "final_judge"),
        "style_fix",
    ]
    assert "structure, reviewed by" in flow_project.read(
        "iterations/1/prompt_adjudicate_claude.txt"
    )
    assert flow_project.load("state.json")["iteration"] == 2
    # The style fix changed the text, so its structure is read again before the run ends.
    assert flow_project.call_fields("constraint").count("structure") == 2
    assert flow_project.call_fields("constraint").count("style") == 2
    assert flow_project.read("final/artifact.md") == FINAL
