from pathlib import Path

import pytest

from signoff.core.errors import InvalidWorkflow
from signoff.core.severity import Severity
from signoff.core.spend import Limits
from signoff.documents.source_file import SourceFile
from signoff.review.flow.model import (
    AdjudicationConfig,
    ConvergenceConfig,
    GenflowConfig,
    OutputConfig,
    StepKind,
    WorkflowStep,
)
from signoff.review.flow.reading import config_from_dict, read_flow, read_flow_file, step_from_dict
from signoff.review.flow.sections import ConstraintConfig, Goal, InlineConstraint
from signoff.review.pure.constraint import ConstraintBehavior
from tests.tables import table

FLOWS = Path(__file__).parents[3] / "fixtures" / "flows"
MINIMAL = "workflow:\n  - step: generate\n"


def complaints(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "flow.yaml"
    file.write_text(text)
    with pytest.raises(InvalidWorkflow) as caught:
        read_flow_file(file)
    return [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems]


def test_every_key_of_a_flow_is_read() -> None:
    """Every key of a file has to have an effect."""
    config = read_flow_file(FLOWS / "every_key.yaml")

    assert config == GenflowConfig(
        workflow=(
            WorkflowStep(
                step=StepKind.GENERATE,
                name="draft",
                agent="claude",
                model="opus",
                timeout=600,
                prompt="brief",
                id="draft",
            ),
            WorkflowStep(
                step=StepKind.CRITIQUE,
                name="review",
                agent="gemini",
                model="flash",
                execution="serial",
                order="definition",
                constraints=("style*", "tone"),
                id="review",
            ),
            WorkflowStep(
                step=StepKind.ADJUDICATE,
                name="judge",
                agent="policy",
                scope="previous",
                on_approved="continue",
                id="judge",
            ),
            WorkflowStep(
                step=StepKind.REFINE,
                name="fix",
                mode="apply",
                loop_to="review",
                validation_retries=2,
                max_size_change_pct=20,
                on_invalid="escalate",
                id="fix",
            ),
        ),
        max_iterations=9,
        default_behavior=ConstraintBehavior.from_dict({"critical": "escalate", "high": "halt"}),
        constraint_behaviors={
            "tone": ConstraintBehavior.from_dict({"medium": "ignore"}),
            "style*": ConstraintBehavior.from_dict({"low": "continue"}),
        },
        constraints=ConstraintConfig(
            files=("tone.yaml",),
            inline={"style-short": InlineConstraint(summary="No sentence is long.")},
        ),
        adjudication=AdjudicationConfig(
            block_on=tuple(Severity),
            triggers=("conflicting_criticals", "not_converging"),
            thrash_threshold=3,
            instructions="Be strict.",
        ),
        output=OutputConfig(dir="out/text", filename="tea.md"),
        convergence=ConvergenceConfig(
            plateau=3, oscillation=2, thrashing=4, only_new=5, action="escalate"
        ),
        allow_scripts=True,
        limits=Limits(2.5, 100000, 40, 900),
        name="every-key",
        description="Uses every key once.",
        goal=Goal(goal="A page about tea."),
    )


def test_missing_keys_of_a_flow_have_the_documented_defaults() -> None:
    """Nothing escalates and no rule ends a run unless the author says so."""
    config = config_from_dict({"workflow": [{"step": "generate"}]})

    assert config == GenflowConfig(workflow=(WorkflowStep(step=StepKind.GENERATE, id="generate"),))
    assert config.max_iterations == 3
    assert config.adjudication.block_on == (Severity.CRITICAL, Severity.HIGH)
    assert config.adjudication.triggers == ()


def test_ten_mistakes_in_one_file_are_ten_problems_with_their_lines(tmp_path: Path) -> None:
    """With one problem per attempt, users need one attempt per mistake."""
    lines = complaints(
        tmp_path,
        """\
max_iterations: 0
nmae: tea
workflow:
  - step: generate
    scope: all
  - step: critique
    execution: paralel
    constraints: style*
  - step: adjudicate
    agnet: claude
  - step: refine
    mode: delete
    loop_to: nowhere
default_behavior: {high: explode}
adjudication:
  approval: {block_on: [SEVERE]}
  escalation: {thrash_threshold: 99}
constraints:
  routing:
    rules: [{match: a}]
    priority_routing: [{range: [3, 1], agents: [a]}]
output:
  dir: ../elsewhere
  filename: a/b
limits: {usd: "5"}
""",
    )

    assert [line.split(" (")[0] for line in lines] == [
        "1: max_iterations is 0",
        "2: unknown key 'nmae'",
        "5: unknown key 'scope'",
        "7: workflow[1].execution is 'paralel'",
        "8: workflow[1].constraints is 'style*'",
        "10: unknown key 'agnet'",
        "12: workflow[3].mode is 'delete'",
        "14: default_behavior.high is 'explode'",
        "16: adjudication.approval.block_on[0] is 'SEVERE'",
        "17: adjudication.escalation.thrash_threshold is 99",
        "20: constraints.routing.rules[0].agents is missing",
        "21: constraints.routing.priority_routing[0].range is [3, 1]",
        "23: output.dir is '../elsewhere'",
        "24: output.filename is 'a/b'",
        "25: limits.usd is '5'",
    ]


@table(
    ("text", "words"),
    [
        ("workflow: [{step: critque}]", "one of: generate, critique, adjudicate, refine"),
        ("workflow: [generate]", "a mapping with step: generate, critique"),
        ("workflow: [{name: a}]", "workflow[0].step is missing (one of: generate, critique"),
        ("workflow: []", "a list of steps"),
        ("workflow: [{step: generate, agnet: a}]", "did you mean 'agent'? valid: step, name"),
        ("workflow: [{step: generate, mode: edit}]", "only refine steps have it; valid: step"),
        ("workflow: [{step: generate, timeout: 0}]", "a number of seconds above 0"),
        ("workflow: [{step: generate, name: a b}]", "letters, digits, _ and -"),
        ("phases: {}\n" + MINIMAL, "only files without `workflow` have it"),
        ("goal: 5\n" + MINIMAL, "goal is 5"),
        ("goal: {gaol: x, goal: y}\n" + MINIMAL, "did you mean 'goal'? valid: goal, source"),
        ("default_behavior: {HIGH: halt, high: ignore}\n" + MINIMAL, "twice"),
        ("convergence: {plateau: 0}\n" + MINIMAL, "a whole number from 1 to 1000"),
        ("output: {dir: iterations}\n" + MINIMAL, "that folder of a run is reserved"),
        ("output: {dir: State.json}\n" + MINIMAL, "that folder of a run is reserved"),
        ("output: {dir: final.}\n" + MINIMAL, "a relative path"),
        ("output: {dir: /etc}\n" + MINIMAL, "a relative path"),
        ("output: {filename: Status.md}\n" + MINIMAL, "that file has the run's status"),
        ("output: {filename: con.md}\n" + MINIMAL, "a file name"),
        ("output: {filename: ..}\n" + MINIMAL, "a file name"),
        ("constraints: {routing: {rules: [{match: a, agents: []}]}}\n" + MINIMAL, "a list of ag"),
        ("adjudication: {tensions: [{guidance: x}]}\n" + MINIMAL, "axis is missing"),
        ("version: 7\nnew: 1", "version 7 is newer"),
        ("version: 0\n" + MINIMAL, "version is 0 (1)"),
        ("- a", "is not a list of `key: value`"),
        ("", "is empty"),
        ("a: [", "expected the node content"),
    ],
)
def test_an_invalid_value_is_reported_with_the_valid_ones(
    tmp_path: Path, text: str, words: str
) -> None:
    """An error without a remedy sends users to the documentation."""
    (line,) = complaints(tmp_path, text)

    assert words in line


def test_rules_about_the_whole_flow_follow_when_its_values_are_valid(tmp_path: Path) -> None:
    """Nonsense about steps in doubt would hide what is really wrong."""
    flow = """\
workflow:
  - {{step: generate, name: draft}}
  - {{step: critique, name: draft, execution: {execution}}}
  - {{step: refine, loop_to: nowhere}}
"""

    (line,) = complaints(tmp_path, flow.format(execution="paralel"))
    assert line.startswith("3: workflow[1].execution is 'paralel'")

    lines = complaints(tmp_path, flow.format(execution="serial"))
    assert [line.split(" (")[0] for line in lines] == [
        "3: 'draft' is the name of workflow[0] and of workflow[1]",
        "4: the refine step at 2 comes before any adjudicate step",
        "4: workflow[2].loop_to is 'nowhere', an unknown step",
    ]


def test_a_typo_in_the_word_workflow_is_not_read_as_the_fixed_loop(tmp_path: Path) -> None:
    """The loop would run instead of what the user wrote."""
    lines = complaints(tmp_path, "worfklow:\n  - step: generate\n")

    assert any("did you mean 'workflow'?" in line for line in lines)


def test_behaviors_and_severities_are_read_in_any_case() -> None:
    """Both `critical: HALT` and `CRITICAL: halt` are found in the wild."""
    config = config_from_dict(
        {
            "workflow": [{"step": "generate"}],
            "default_behavior": {"Critical": "HALT", " low ": "Ignore"},
            "adjudication": {"approval": {"block_on": ["low", "Critical"]}},
        }
    )

    assert config.default_behavior.to_json() == {"critical": "halt", "low": "ignore"}
    assert config.adjudication.block_on == (Severity.CRITICAL, Severity.LOW)


@pytest.mark.parametrize(
    ("approval", "termination", "agree"),
    [
        ({"block_on": ["CRITICAL", "HIGH"], "policy": "no_critical_or_high"}, {}, True),
        ({"block_on": ["HIGH", "CRITICAL"]}, {"approve_when": "no_critical_and_no_high"}, True),
        ({"policy": "no_critical"}, {"approve_when": "no_critical"}, True),
        ({"block_on": ["CRITICAL"], "policy": "all_resolved"}, {}, False),
        ({"block_on": ["CRITICAL"]}, {"approve_when": "no_critical_and_no_high"}, False),
        ({"policy": "no_critical"}, {"approve_when": "all_resolved"}, False),
    ],
)
def test_two_keys_for_what_blocks_must_agree(
    approval: dict[str, object], termination: dict[str, object], agree: bool
) -> None:
    """Whichever key wins, readers of the other one would be wrong."""
    raw = {
        "workflow": [{"step": "generate"}],
        "adjudication": {"approval": approval},
        "termination": termination,
    }

    if agree:
        assert config_from_dict(raw).adjudication.block_on[0] is Severity.CRITICAL
        return
    with pytest.raises(InvalidWorkflow, match="keep one of them"):
        config_from_dict(raw)


def test_two_keys_for_when_a_human_is_asked_must_agree() -> None:
    """Whether a run waits must not depend on the order of keys."""
    raw = {
        "workflow": [{"step": "generate"}],
        "adjudication": {"escalation": {"triggers": ["thrashing"]}},
        "termination": {"escalate_on": ["max_iterations"]},
    }

    with pytest.raises(InvalidWorkflow, match=r"termination\.escalate_on is max_iterations"):
        config_from_dict(raw)
    raw["termination"] = {"escalate_on": ["thrashing"]}
    assert config_from_dict(raw).adjudication.triggers == ("thrashing",)


def test_keys_without_a_value_count_as_absent(tmp_path: Path) -> None:
    """Users comment out values and leave the keys."""
    (tmp_path / "flow.yaml").write_text(MINIMAL + "limits:\nconstraints:\nadjudication:\n")

    assert read_flow_file(tmp_path / "flow.yaml").limits == Limits()


def test_a_step_can_be_read_by_itself() -> None:
    """Flows are also put together in Python."""
    step = step_from_dict({"step": "refine", "loop_to": "review"})

    assert step == WorkflowStep(step=StepKind.REFINE, loop_to="review", id="refine")
    with pytest.raises(InvalidWorkflow, match="only adjudicate steps have it"):
        step_from_dict({"step": "critique", "scope": "all"})


@pytest.mark.parametrize(
    "flow",
    ["workflow: [{step: critique}]", "workflow: [{step: crit}]", "max_iterations: 0", "limits: 3"],
)
def test_mistakes_of_all_files_are_reported_together(tmp_path: Path, flow: str) -> None:
    """Problems in one file must not hide those in another."""
    (tmp_path / "flow.yaml").write_text(f"{flow}\nconstraints: {{dir: rules}}\n")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.yaml").write_text("summary: [")
    (tmp_path / "rules" / "b.yaml").write_text("priority: high\n")
    (tmp_path / "goal.yaml").write_text("gaol: x\n")

    with pytest.raises(InvalidWorkflow) as caught:
        read_flow(SourceFile(tmp_path / "flow.yaml"), root=tmp_path, goal=tmp_path / "goal.yaml")

    files = {Path(problem.where.split(":")[0]).name for problem in caught.value.problems}
    assert files == {"flow.yaml", "a.yaml", "b.yaml", "goal.yaml"}


def test_a_model_with_several_routed_agents_is_refused_where_it_matters(tmp_path: Path) -> None:
    """One model's name cannot be right for two agents."""
    flow = """\
workflow:
  - step: generate
  - step: critique
    model: opus
    constraints: [{pattern}]
constraints:
  inline: {{safe: Nothing is unsafe., tone: It is friendly.}}
  routing:
    rules:
      - {{match: safe, agents: [claude, codex]}}
      - {{match: tone, agents: [claude]}}
"""
    file = tmp_path / "flow.yaml"

    file.write_text(flow.format(pattern="tone"))
    assert read_flow(SourceFile(file), root=tmp_path).config.workflow[1].model == "opus"

    file.write_text(flow.format(pattern="safe"))
    with pytest.raises(InvalidWorkflow, match="but the routing names claude, codex"):
        read_flow(SourceFile(file), root=tmp_path)
