"""The functions for programs that send the prompts of a flow themselves."""

from signoff.core.effects import ProductPrompt
from signoff.flows import (
    Adjudication,
    Constraint,
    Critique,
    Goal,
    build_adjudicator_prompt,
    build_critic_prompt,
    build_generator_prompt,
    build_refinement_prompt,
    get_critiques_for_scope,
)
from signoff.review.critique import CritiqueIssue, Overall, Verdict

TONE = Constraint("tone", 1, "Be kind.")
VERDICT = Adjudication(1, Verdict.REWRITE, bill_of_work="Say hello.")
CRITIQUE = Critique("tone", "ann", 1, Overall.FAIL, (CritiqueIssue("tone-001", finding="Cold."),))


def test_the_author_gets_the_previous_round_only_from_the_second_round_on() -> None:
    """In the first round there is nothing to revise, whatever is passed."""
    first = build_generator_prompt("A letter.", [TONE], previous="HI", adjudication=VERDICT)
    second = build_generator_prompt(
        Goal(goal="A letter."), [TONE], previous="HI", adjudication=VERDICT, iteration=2
    )

    assert "A letter." in first
    assert "Be kind." in first
    assert "HI" not in first
    assert "HI" in second
    assert "Say hello." in second


def test_each_role_gets_its_material_and_a_system_prompt() -> None:
    """A program passes both to its agent."""
    critic = build_critic_prompt(TONE, "HELLO", "A letter.", sources="notes")
    judge = build_adjudicator_prompt("HELLO", [CRITIQUE], [TONE], "A letter.")
    fixer = build_refinement_prompt(VERDICT, "A letter.", filename="letter.md", constraints=[TONE])

    assert all(text in critic for text in ("HELLO", "A letter.", "notes", "against tone now"))
    assert all(text in judge for text in ("HELLO", "tone-001", "Cold."))
    assert all(text in fixer for text in ("`letter.md`", "Say hello.", "Be kind."))
    assert [_role(each) for each in (critic, judge, fixer)] == [
        "You are a critic",
        "You are the judge of a review",
        "You are an editor",
    ]


def test_a_scope_selects_critiques() -> None:
    """The judge of a first pass must not decide about what it was not meant to see."""
    stored = {**CRITIQUE.to_json(), "step": "one"}
    state = {
        "critiques_by_step": {"one": [stored], "two": []},
        "unadjudicated_critiques": [],
        "last_critique_step": "two",
    }

    assert get_critiques_for_scope(state) == []
    assert get_critiques_for_scope(state, "previous") == []
    assert get_critiques_for_scope(state, "all") == [CRITIQUE]


def _role(prompt: ProductPrompt) -> str:
    return (prompt.system or "").partition(".")[0]
