from itertools import product

import pytest

from signoff.core.severity import IssueBehavior, Severity
from signoff.flows import ConvergenceConfig, GenflowConfig, WorkflowStep, get_behavior_for_severity
from signoff.review.flow.model import StepKind, resolve_constraints_for_step, with_ids
from signoff.review.pure.constraint import BUILT_IN, Constraint, ConstraintBehavior, Level
from signoff.review.pure.policy import STOP_RULES

LEVELS = (Level.CONSTRAINT, Level.FLOW, Level.DEFAULT)
STEPS = (WorkflowStep(step=StepKind.GENERATE),)


def level_of(levels: dict[Level, ConstraintBehavior]) -> tuple[GenflowConfig, Constraint]:
    silent = ConstraintBehavior()
    config = GenflowConfig(
        workflow=STEPS,
        default_behavior=levels.get(Level.DEFAULT, silent),
        constraint_behaviors={"tone": levels[Level.FLOW]} if Level.FLOW in levels else {},
    )
    return config, Constraint("tone", behavior=levels.get(Level.CONSTRAINT))


@pytest.mark.parametrize(("severity", "behavior"), [*product(Severity, IssueBehavior)])
def test_the_strongest_level_that_names_a_severity_decides_it(
    severity: Severity, behavior: IssueBehavior
) -> None:
    """Every severity, every behavior, every set of levels."""
    other = next(each for each in IssueBehavior if each is not behavior)
    for speaking in product((True, False), repeat=3):
        stated = [level for level, speaks in zip(LEVELS, speaking, strict=True) if speaks]
        levels = {level: ConstraintBehavior({severity: other}) for level in stated}
        if stated:
            levels[stated[0]] = ConstraintBehavior({severity: behavior})
        config, constraint = level_of(levels)

        resolved = config.behavior(constraint, severity)

        expected = (behavior, stated[0]) if stated else (BUILT_IN.get(severity), Level.BUILT_IN)
        assert (resolved.behavior, resolved.level) == expected


@pytest.mark.parametrize(("level", "named"), [*product(LEVELS, Severity)])
def test_a_level_that_names_one_severity_leaves_the_others_open(
    level: Level, named: Severity
) -> None:
    """A constraint that escalates CRITICAL must not change what its LOW issues do."""
    config, constraint = level_of({level: ConstraintBehavior({named: IssueBehavior.ESCALATE})})

    for severity in Severity:
        resolved = config.behavior(constraint, severity)
        if severity is named:
            assert (resolved.behavior, resolved.level) == (IssueBehavior.ESCALATE, level)
        else:
            assert (resolved.behavior, resolved.level) == (BUILT_IN.get(severity), Level.BUILT_IN)


def test_an_exact_id_is_stronger_than_a_pattern_and_the_first_pattern_than_the_next() -> None:
    """One constraint can be an exception among similar ones."""
    config = GenflowConfig(
        workflow=STEPS,
        constraint_behaviors={
            "to*": ConstraintBehavior.from_dict({"low": "halt", "high": "ignore"}),
            "*": ConstraintBehavior.from_dict({"low": "escalate", "medium": "escalate"}),
            "tone": ConstraintBehavior.from_dict({"low": "continue"}),
        },
    )

    behaviors = {s: config.behavior(Constraint("tone"), s).behavior.value for s in Severity}

    assert behaviors == {
        "LOW": "continue",
        "HIGH": "ignore",
        "MEDIUM": "escalate",
        "CRITICAL": "halt",
    }


def test_the_documented_names_work() -> None:
    """Users write these calls as documented."""
    step = WorkflowStep.from_dict({"step": "critique", "name": "review", "execution": "serial"})
    config = GenflowConfig.from_dict(
        {"workflow": [{"step": "generate"}], "default_behavior": {"high": "escalate"}}
    )

    assert (step.id, step.execution) == ("review", "serial")
    assert get_behavior_for_severity(config, Constraint("a"), "high") is IssueBehavior.ESCALATE
    assert get_behavior_for_severity(config, Constraint("a"), Severity.LOW) is IssueBehavior.IGNORE


DEFINED = [
    Constraint("style-long", priority=3),
    Constraint("security", priority=1),
    Constraint("style", priority=3),
    Constraint("Tone", priority=2),
]
CHOSEN: dict[tuple[str, ...] | None, str] = {
    None: "style-long security style Tone",
    (): "",
    ("style*",): "style-long style",
    ("style",): "style",
    ("s*", "style"): "style-long security style",
    ("*",): "style-long security style Tone",
    ("tone",): "",
    ("[ST]*", "security"): "security Tone",
    ("nothing*",): "",
}


@pytest.mark.parametrize(
    ("steps", "ids"),
    [
        ("generate critique adjudicate refine", "generate critique adjudicate refine"),
        ("generate critique critique", "generate critique_1 critique_2"),
        ("generate critique:a critique", "generate a critique"),
        ("generate adjudicate:critique critique", "generate critique critique_2"),
        ("generate:draft critique:a critique:b", "draft a b"),
    ],
)
def test_a_step_is_named_by_its_name_or_by_its_kind(steps: str, ids: str) -> None:
    """Files, logs and `loop_to` use these names; short ones where they are clear."""
    built = []
    for each in steps.split():
        kind, _, name = each.partition(":")
        built.append(WorkflowStep(step=StepKind(kind), name=name or None))

    assert [step.id for step in with_ids(built)] == ids.split()


@pytest.mark.parametrize(("patterns", "order"), [*product(CHOSEN, ("priority", "definition"))])
def test_patterns_select_and_the_order_sorts(patterns: tuple[str, ...] | None, order: str) -> None:
    """Each critique step reviews exactly the constraints that it names, in its order."""
    step = WorkflowStep(
        step=StepKind.CRITIQUE,
        constraints=patterns,
        order="priority" if order == "priority" else "definition",
    )

    chosen = resolve_constraints_for_step(step, DEFINED)

    ids = CHOSEN[patterns].split()
    if order == "priority":
        # Equal priorities keep the order of definition.
        ids = [name for name in "security Tone style-long style".split() if name in ids]
    assert [constraint.id for constraint in chosen] == ids


def test_every_stop_rule_has_its_number_in_the_settings() -> None:
    """A rule that no file can turn on, or a key without a rule, would do nothing in silence."""
    assert {*STOP_RULES} == {*ConvergenceConfig.model_fields} - {"action"}
