"""Works out an answer to an open question: criteria, facts, candidates, a draft, attacks on it."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    NOTES_IN_REPLY,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until,
    repeat_until_confident,
)
from signoff.skills.state import STATE_DIR, state_directory

DESCRIPTION = """\
Work out an answer to an open question. Use it for designs, trade-offs and strategies with
several defensible answers. Do not use it for facts, a cause (problem-analysis), or a decision
made (decision-critic)."""

BRIEF = "brief.md"

SKELETON = """\
# Brief

## Question

## What a good answer must do

## Facts
"""

QUICK, FULL = "quick", "full"

FRAME = f"""\
The question is the parameter `task` if there is one, else what the user asked. `{BRIEF}` in the
state directory is what sub-agents will read; it holds the question, criteria and facts, never an
answer.

Do:
1. Write the question in one sentence, then what the asker will do with the answer. If these two
   do not fit together, the real question is another one: write that one down as well.
2. Write the form of the answer: a decision, a design, a ranking, an explanation, a number.
3. Write what is fixed (and by whom), what may be changed, and how far ahead the answer looks.
4. Write down what you would answer right now, in your own notes and not in `{BRIEF}`. You will
   check later whether you only defended it.
5. List the words in the question that could mean two things, and which meaning you take.
6. Ask the user only if two readings would lead to different answers and nothing at hand decides.

Done when another expert would work on the same question after reading your text.

Do not begin to answer, and do not narrow the question to the part that is easy to answer.

Write into `{BRIEF}`: "Question", with purpose, form, what is fixed, and the meaning of words.

Then report `mode`:
- `{QUICK}`: the answer is needed soon, or a wrong one is cheap to correct; you think alone.
- `{FULL}`: a wrong answer is expensive; sub-agents think independently of you before you draft.
If the user named a mode, take that one. Without a mode, the step is repeated; once you have
reported it, continue with the next step."""

CRITERIA = f"""\
`{BRIEF}` in the state directory has the question. This step fixes how answers will be judged,
before there are any.

Do:
1. Write the requirements: what makes an answer unacceptable. Each must be testable ("survives the
   loss of one node"), with its source (user, law, physics, existing commitment).
2. Write the criteria: what makes one acceptable answer better than another, at most six, in order
   of importance, each with how it would be measured or told.
3. Name the general kind of problem this is an instance of (cache invalidation, make or buy,
   allocation under uncertainty), what is known about the kind, and what is unusual about this
   case.
4. Write two tests: a case that a good answer must handle and a bad one would not; and a sign by
   which one would notice, after the fact, that the answer was wrong.

Done when a person with the opposite preference would accept the requirements and criteria as
fair.

Do not write a criterion that only one solution can meet: that is an answer in disguise.

Write into `{BRIEF}`: "What a good answer must do", with requirements, criteria in order, and the
two tests."""

FACTS = f"""\
`{BRIEF}` in the state directory has the question and the criteria.

Do:
1. List what you would have to know to judge an answer by each criterion.
2. Find it out: read the code, data, documents, contracts and history; measure; calculate; search.
   Write each fact with its source (file and line, command and output, page and date).
3. Mark what you could not find out as an assumption, with the range it lies in and how the answer
   might depend on it.
4. Look for cases: who had this question before, here or elsewhere, what did they do, and how did
   it turn out? Note failures too.
5. Compare the facts with your spontaneous answer. Note what does not fit.

Done when each criterion has the facts it needs, or an assumption in their place, and the next
hour of searching would not change which answers are possible.

Do not write "usually" or "it is known that" without a source. Do not collect facts that no
criterion needs.

Write into `{BRIEF}`: "Facts", with sources, assumptions with ranges, and cases."""

CANDIDATES = f"""\
`{BRIEF}` in the state directory has the question, requirements, criteria and facts.

Do:
1. Write at least four candidates that differ in their principle and not in details: one that most
   experts would name; one that removes the problem instead of solving it; one that costs a tenth;
   one that contradicts your spontaneous answer.
2. Describe each so that it could be carried out: how it works, what it needs, what it gives up.
3. For each, write the strongest reason for it and the fact or assumption that would kill it.
4. Only then compare: strike out those that fail a requirement, and name the requirement. For the
   rest, write where each is best and worst, criterion by criterion.

Done when at least two candidates meet all requirements, or you can show why only one can.

Do not choose yet. Do not write candidates that exist only to lose.

Write down, in your own notes and not in `{BRIEF}`: the candidates, what would kill each, and the
comparison.

The mode from the first step decides what follows: in `{FULL}`, sub-agents work on the question;
in `{QUICK}`, you draft the answer. Report `mode` only to change it."""

ANGLES = f"""\
`{BRIEF}` in the state directory is all that the sub-agents will know. This step decides from
which angles they look at the question, and makes the brief complete.

Do:
1. Choose three to five angles that would lead to different answers if they were taken alone: a
   role that bears the consequences (who operates it, pays for it, attacks it, maintains it in
   five years), a constraint pushed to its extreme, a discipline with its own solutions for this
   kind of problem, or the person who thinks that the question is wrong.
2. Name each in a few words that say what to look for: "operator at 3 a.m.", "ten times the load".
3. Read `{BRIEF}` as if you knew nothing else. Add what is missing; remove each hint at the
   candidate you prefer.

Done when no two angles would make the same argument, and the brief can be understood alone.

Do not assign candidates to angles: an agent that defends a given answer adds no information.

Then report `angles`: their names, separated by commas, without a comma inside a name. Without it
the step is repeated; once you have reported it, continue with the next step."""

THINK = f"""\
One sub-agent for each angle does this, independently of the others. Your angle is the one you
were given by name; without one, choose the role that bears the consequences of the answer. Read
`{BRIEF}` in the state directory: question, requirements, criteria, facts. Read no other notes on
this question, and change no file.

Do:
1. Write what matters from this angle that the brief does not mention.
2. Check the two facts of the brief that matter most here at their source. Find facts it lacks.
3. Give your own answer to the question, with the mechanism by which it works.
4. Write the best objection to your answer from another angle, and whether it holds.
5. Write what would have to be true for the opposite answer to be right.

Done when your answer meets the requirements of the brief, or you can show that none can.

Do not give a list of considerations in place of an answer, and do not try to guess what the
others will say.

Answer in at most 40 lines: the answer in two sentences; what it rests on, with sources;
corrections to the brief; the objection; what would change your mind."""

RECONCILE = f"""\
You have your own candidates and comparison, and the answers of the sub-agents from their angles
(the result of the step before).

Do:
1. List each claim in their answers that is new, and each that contradicts another or yours.
2. Settle contradictions about facts at the source. Write who was right. Correct `{BRIEF}`.
3. For contradictions about values, write which criterion each side puts first. Those are not
   errors; the order of the criteria decides them, or the user does.
4. Add answers that differ from all your candidates to the candidates, and judge them the same
   way.
5. Where all agree, ask whether they share a source or an assumption. Agreement of answers that
   come from the same brief is weak evidence: check that one point yourself.
6. Compare the result with your spontaneous answer. If it is the same, name the strongest point
   against it that came up.

Done when each contradiction is settled, or marked as a choice of values, and no answer was
ignored without a reason.

Do not count votes. One answer with a fact beats four without.

Write down: the corrected candidates and comparison, contradictions and how they were settled."""

DRAFT = f"""\
You have candidates with a comparison, and `{BRIEF}` in the state directory with requirements,
criteria and facts.

Do:
1. Choose a candidate, or a combination if its parts really work together, and write the answer in
   the form that the question asks for.
2. Give the reasoning as a chain: facts, what follows from them, the criterion that decided. Mark
   each link as fact (with source), inference or assumption.
3. Write for the next best candidate why it is not the answer, and under which conditions it would
   be.
4. Apply the two tests from the criteria to the answer and write the result.
5. Write what it costs, what it risks, the first step, and when one would notice that it is wrong.

Done when the answer can be attacked: each sentence of the chain is definite enough to be false.

Do not hedge with "it depends" unless you say on what, and give the answer for each case. Do not
combine candidates only to avoid a choice.

Write down: the draft with its chain."""

REFINE = """\
You have a draft answer with its chain of reasoning.

Do, in each round:
1. Attack the draft with the next of these that has not been used: (a) check the facts it rests on
   at their source, again; (b) find the case, input or event in which it gives a bad result; (c)
   take the weakest inference and try to make it false with everything else true; (d) ask what
   happens after it succeeds, and what others will do in response; (e) argue for the next best
   candidate as its advocate would.
2. Write the attack in its strongest form and what it shows: nothing, a limit, an error.
3. Repair errors in the chain, not only in the conclusion. If the repair adds an exception, check
   whether another candidate would be simpler now.
4. If the answer changed, the attacks used so far count only where they are not affected.

Done when attacks (a), (b) and (e) were made on the present version and none changed it.

Do not treat a change of wording as a repair. Do not report high confidence in the round in which
the answer changed.

Write down: each attack with its result, the current answer, and what is still weak."""

ANSWER = f"""\
You have an answer that was attacked, its chain, and `{BRIEF}` in the state directory.

Do:
1. Write the answer in its first two sentences, in the words of the person who asked.
2. Give the three or four reasons that carry it, each with its source.
3. Give the conditions under which it holds, the next best answer, and when to choose that one.
4. State what you assumed, what you could not find out, your confidence, and why it is not higher.
   If the attacks ended before confidence was high, say so in the third sentence.
5. Give the first step to take and the sign by which to notice early that the answer is wrong.
6. Check it against the question in `{BRIEF}`: does it answer that question, in that form?

Done when the reader can act on it or disagree with a particular sentence.

Do not describe how you thought. Do not add points that no earlier step established. Keep it as
short as the question allows.

Write down: the answer."""

Mode = Annotated[str | None, Arg("alone, or with sub-agents", choices=(QUICK, FULL))]
Angles = Annotated[list[str] | None, Arg("names of the angles, separated by commas")]
DEFAULT_ANGLE = "the one who bears the consequences"
Result = tuple[Outcome, dict[str, Any]]


def frame(ctx: StepContext, mode: Mode = None, iteration: Iteration = 1) -> Result:
    """Asks for the mode until there is one."""
    outcome, _ = repeat_until(mode is not None, ctx, iteration)
    return outcome, {"mode": mode or FULL}


def candidates(ctx: StepContext, mode: Mode = None) -> Result:
    """Leaves out the sub-agents in mode quick."""
    chosen = mode or ctx.step_state.get("mode")
    return (Outcome.SKIP if chosen == QUICK else Outcome.OK), {}


def angles(ctx: StepContext, angles: Angles = None, iteration: Iteration = 1) -> Result:
    """Keeps the angles for the sub-agents."""
    outcome, _ = repeat_until(bool(angles), ctx, iteration)
    return outcome, {"angles": angles or [DEFAULT_ANGLE]}


def refine(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> Result:
    """Repeats the attacks until the answer holds."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, ITERATE = Outcome.OK, Outcome.ITERATE

WORKFLOW = Workflow(
    "deepthink",
    StepDef(
        "frame",
        "Frame the question",
        [FRAME, NOTES_IN_REPLY],
        frame,
        {OK: "criteria", ITERATE: "frame"},
    ),
    StepDef(
        "criteria", "Fix how answers are judged", [CRITERIA, NOTES_IN_REPLY], next={OK: "facts"}
    ),
    StepDef("facts", "Collect the facts", [FACTS, NOTES_IN_REPLY], next={OK: "candidates"}),
    StepDef(
        "candidates",
        "Write different candidates",
        [CANDIDATES, NOTES_IN_REPLY],
        candidates,
        {OK: "angles", Outcome.SKIP: "draft"},
    ),
    StepDef(
        "angles",
        "Choose the angles",
        [ANGLES, NOTES_IN_REPLY],
        angles,
        {OK: "think", ITERATE: "angles"},
        edits=True,
    ),
    StepDef(
        "think",
        "Think from one angle",
        [THINK],
        Dispatch(AgentRole.GENERAL_PURPOSE, free_form=True, for_each="angles"),
        {OK: "reconcile"},
    ),
    StepDef("reconcile", "Reconcile the answers", [RECONCILE, NOTES_IN_REPLY], next={OK: "draft"}),
    StepDef("draft", "Draft the answer", [DRAFT, NOTES_IN_REPLY], next={OK: "refine"}),
    StepDef(
        "refine",
        "Attack the draft",
        [REFINE, NOTES_IN_REPLY, CONFIDENCE_SCALE],
        refine,
        {OK: "answer", ITERATE: "refine"},
    ),
    StepDef("answer", "Give the answer", [ANSWER, NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("deepthink", {BRIEF: SKELETON}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
