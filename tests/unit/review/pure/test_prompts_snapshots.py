"""Every prompt, word for word: a change of a template or of its material shows up as a diff.

`pytest tests/unit/review/pure/test_prompts_snapshots.py --update-snapshots` accepts the changes.
"""

import difflib
from pathlib import Path

import pytest

from signoff.core.checked import correction
from signoff.core.effects import ProductPrompt
from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.core.words import Label
from signoff.review.pure.constraint import Constraint, Rule
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall
from signoff.review.pure.prompt_text import ConstraintMaterial, Guidance
from signoff.review.pure.prompts import (
    brief_prompt,
    build_adjudicator_prompt,
    build_critic_prompt,
    build_generator_prompt,
    build_refinement_prompt,
    verifier_prompt,
)

FOLDER = Path(__file__).with_name("snapshots")

GOAL = "Write a welcome letter to new members of the rowing club."
SOURCES = "### FILE: fees.md\n\nThe fee is 80 euros a year.\n"
ARTIFACT = "# Welcome\n\nROWING IS FUN! The fee is 90 euros.\n"
TONE = Constraint(
    "tone",
    2,
    "Friendly and calm.",
    (Rule("calm", "No shouting.", Severity.MEDIUM, "COME NOW!", "Come when you like."),),
)
FACTS = Constraint("facts", 1, "Only what the sources say.", (Rule("true", "No false figures."),))
LAW = Constraint("law", 3, "Promise nothing.")
ISSUE = CritiqueIssue(
    "facts-001",
    "true",
    Severity.HIGH,
    "second sentence",
    "The fee is wrong.",
    "The fee is 90 euros.",
    "Write 80 euros.",
    0.95,
    impact="Members pay too much.",
)
DOUBTFUL = CritiqueIssue("tone-001", "calm", Severity.MEDIUM, finding="Loud.", unverified=True)
CRITIQUES = (
    Critique("facts", "claude", 1, Overall.FAIL, (ISSUE,)),
    Critique("tone", "codex", 1, Overall.FAIL, (DOUBTFUL,)),
    Critique("law", "claude", 1, Overall.PASS),
)
REMEMBERED = (
    "3fa9c0de11b2 [tone/calm, MEDIUM, open since round 1, not reported again] "
    '"ROWING IS FUN!": It shouts.'
)
FORGOTTEN = CritiqueIssue(
    "3fa9c0de11b2",
    "calm",
    Severity.MEDIUM,
    "heading",
    "It shouts.",
    "ROWING IS FUN!",
    finding_id="3fa9c0de11b2",
    label=Label.STILL_OPEN,
    not_reported_again=True,
)
WORK_ORDER = "### Issue: facts-001 (HIGH)\n\nReplace 90 by 80.\n"
GUIDANCE = (Guidance("How formal should it be?", "Not at all."),)
KNOWN = ("open since round 1: facts-001, The fee is wrong.",)
FINDINGS = ("[HIGH] facts-001 violates true: No false figures.\n  quote: The fee is 90 euros.",)
APPROVED = ("# Welcome: the heading",)


def judge(*, structured: bool = False) -> ProductPrompt:
    return build_adjudicator_prompt(
        goal=GOAL,
        artifact=ARTIFACT,
        constraints=[TONE, FACTS, LAW],
        critiques=CRITIQUES,
        block_on=DEFAULT_BLOCK_ON,
        tensions=[("short or complete", "lean to short", "tone")],
        instructions="Be lenient with humor.",
        guidance=GUIDANCE,
        known=KNOWN,
        held_back_by=["3fa9c0de11b2 (HIGH)"],
        disputed_sources={"": "notes", "facts": SOURCES},
        structured=structured,
    )


def verifier(*, structured: bool = False) -> ProductPrompt:
    return verifier_prompt(
        goal=GOAL,
        passage=ARTIFACT,
        constraint=FACTS,
        issue=ISSUE,
        sources=SOURCES,
        structured=structured,
    )


def sent_back(prompt: ProductPrompt) -> ProductPrompt:
    why = correction('{"overall": "FAIL", "issues": []}', ["FAIL without any issue"])
    return ProductPrompt(f"{prompt}\n\n{why}\n", system=prompt.system)


CRITIC = build_critic_prompt(
    goal=GOAL, artifact=ARTIFACT, constraint=FACTS, sources=SOURCES, goal_sources="notes"
)
PROMPTS: dict[str, ProductPrompt] = {
    "author_first": build_generator_prompt(goal=GOAL, sources=SOURCES, constraints=[TONE, FACTS]),
    "author_second": build_generator_prompt(
        goal=GOAL,
        sources=SOURCES,
        constraints=[TONE, FACTS],
        previous=ARTIFACT,
        bill_of_work=WORK_ORDER,
        guidance=GUIDANCE,
        iteration=2,
        findings=FINDINGS,
        approved=APPROVED,
    ),
    "author_already_applied": build_generator_prompt(
        goal=GOAL,
        sources="",
        constraints=[TONE],
        previous=ARTIFACT,
        bill_of_work=WORK_ORDER,
        iteration=2,
        already_applied=True,
    ),
    "author_brief": brief_prompt(
        goal=GOAL, sources=SOURCES, bill_of_work=WORK_ORDER, guidance=GUIDANCE
    ),
    "critic_first": CRITIC,
    "critic_second": build_critic_prompt(
        goal=GOAL,
        artifact=ARTIFACT,
        constraint=TONE,
        analysis="exit code 1\n12 capitals in a row",
        guidance=GUIDANCE,
        known=KNOWN,
        max_findings=5,
    ),
    "critic_several": build_critic_prompt(
        goal=GOAL,
        artifact=ARTIFACT,
        constraint=FACTS,
        sources=SOURCES,
        also=[ConstraintMaterial(TONE, analysis="12 capitals in a row"), ConstraintMaterial(LAW)],
        known=KNOWN,
        structured=True,
    ),
    "critic_structured": build_critic_prompt(
        goal=GOAL, artifact=ARTIFACT, constraint=TONE, structured=True
    ),
    "judge_structured": judge(structured=True),
    "judge_not_reported_again": build_adjudicator_prompt(
        goal=GOAL,
        artifact=ARTIFACT,
        constraints=[TONE, FACTS],
        critiques=[
            Critique("tone", "codex", 2, Overall.PASS, (FORGOTTEN,)),
            Critique("facts", "claude", 2, Overall.PASS),
        ],
        block_on=DEFAULT_BLOCK_ON,
        known=[REMEMBERED],
    ),
    "fixer_first": build_refinement_prompt(
        filename="artifact.md",
        bill_of_work=WORK_ORDER,
        goal=GOAL,
        constraints=[TONE, FACTS],
        findings=FINDINGS,
        approved=APPROVED,
    ),
    "fixer_again": build_refinement_prompt(
        filename="artifact.md",
        bill_of_work=WORK_ORDER,
        goal=GOAL,
        guidance=GUIDANCE,
        feedback="changed nothing",
        unchanged_before=True,
    ),
    "verifier_structured": verifier(structured=True),
    "critic_retry": sent_back(CRITIC),
    "judge": judge(),
    "verifier": verifier(),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_is_the_one_in_its_snapshot(name: str, request: pytest.FixtureRequest) -> None:
    """Nobody should change what agents are told without reading it."""
    prompt = PROMPTS[name]
    now = f"SYSTEM\n\n{prompt.system}\n\nPROMPT\n\n{prompt}"
    file = FOLDER / f"{name}.md"
    if request.config.getoption("--update-snapshots"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(now)

    before = file.read_text() if file.exists() else ""
    diff = difflib.unified_diff(
        before.splitlines(), now.splitlines(), "snapshot", "now", lineterm=""
    )

    assert before == now, "\n".join(["the prompt has changed (--update-snapshots):", *diff])


def test_each_snapshot_belongs_to_a_prompt() -> None:
    """A stale file would show a prompt that is never sent."""
    names = {file.stem for file in FOLDER.glob("*.md")}

    assert names <= PROMPTS.keys()
