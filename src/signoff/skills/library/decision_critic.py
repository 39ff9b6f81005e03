"""Examines a decision before it is carried out: what it rests on, and what speaks against it."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until_confident,
)

DESCRIPTION = """\
Examine a decision and its reasons before it is carried out. Use it when undoing it would be
expensive. Do not use it to choose among open options (deepthink) or to find a cause
(problem-analysis)."""

STRUCTURE = """\
The decision is the parameter `task` if there is one, else what the user asked about. If it is not
clear which decision is meant, ask; do not examine a guess.

Do:
1. Write the decision as one sentence: who will do what, instead of what, by when.
2. Collect the reasoning from documents, tickets and the conversation, in the author's words.
3. Split it into single statements, each with an id:
   - C1, C2, ...: claims of fact ("the API allows 100 requests per second")
   - A1, A2, ...: assumptions that it needs and that no one stated ("traffic will not double")
   - K1, K2, ...: constraints (deadline, budget, law, compatibility), with who set each of them
   - J1, J2, ...: judgments and preferences ("easier to operate")
4. Note the source of each statement: a document and the place in it, a person, or "unstated".
5. Write what it costs to undo the decision after a day, a month and a year.

Done when every reason that was given appears in the list, at least three assumptions are in it,
and each statement can be true or false by itself.

Do not judge anything yet. Do not leave out a reason because it seems weak, and do not improve it.

Write down: the sentence, the statements with ids and sources, the cost of undoing it."""

LOAD = """\
You have the decision as a sentence and its statements: C (claims), A (assumptions), K
(constraints), J (judgments).

Do, for each statement:
1. Suppose that it is false and all others are true. If the same people would then decide
   otherwise, it is load-bearing.
2. Note how it can be checked: "now" (name the file, command, document, calculation or person),
   "by trial" (name the experiment and its cost), or "not in advance" (a forecast or a taste).
3. Note its support so far: "seen" (you have looked at the source), "asserted", "contradicted".
4. For a constraint, find out who set it and whether that person could lift it. Some constraints
   are habits.
Then sort: load-bearing and only asserted first.

Done when every statement has these marks. If more than half are load-bearing, the test in 1 was
not applied: repeat it. If none is, the stated reasons are not the real ones: write down what
seems to have decided the matter and treat that as a statement.

Do not mark a statement as load-bearing because it sounds important or comes from someone senior.

Write down: the sorted table of id, statement, load-bearing or not, how to check, support."""

QUESTIONS = """\
You have a table of statements; some are load-bearing.

Do:
1. For each load-bearing statement, write a question that a person who knows nothing about the
   decision could answer: "How many requests per second does the plan allow?", not "Is the limit
   high enough?".
2. Next to it, write the answer that would confirm the statement and the answer that would refute
   it, with a number or a name wherever possible.
3. Name the primary source to look at first: code, contract, measurement, the documentation of the
   version in use, the person who runs it.
4. Add three questions about the decision as a whole: How did similar decisions turn out, here and
   elsewhere? What happens if nothing is done for three months? What would the best-informed
   opponent say?

Done when each question has a refuting answer that could really come back. Replace a question that
can only be answered one way.

Do not look anything up yet. Thresholds that are chosen after the evidence is known always fit.

Write down: for each question its id, the confirming and the refuting answer, the first source."""

ANSWER = """\
You have questions with their confirming and refuting answers, written before anyone looked.

Do, in each round:
1. Take the open questions in their order, load-bearing and only asserted statements first.
2. Answer each from its primary source and quote it: file and line, command and output, document
   with version and section, person and date.
3. Compare with the answers written before: confirmed, refuted or unknown. If a threshold turns
   out to be wrong, say so and why; do not move it silently.
4. For each "confirmed", search once for the opposite: a counterexample, a failed attempt, a newer
   version in which it no longer holds.
5. If a source is out of reach, mark the statement unknown and write what it would take to know.

Done when each load-bearing statement is confirmed or refuted with evidence, or unknown with the
reason.

Do not use the decision's own reasoning as evidence. Do not accept a summary when the source is
one step away. Do not stop at the first refutation: the rest decides what remains possible.

Write down: id, answer, evidence with its place, and confirmed, refuted or unknown."""

ALTERNATIVES = """\
You have the decision, its constraints, and what was confirmed, refuted or left unknown.

Do:
1. Describe at least three alternatives: doing nothing until a named event; the smallest step that
   can be undone and brings the missing information; what the best-informed opponent would do.
2. For each, write the case its advocate would make, what must be true for it to work, its cost,
   and the cost of undoing it.
3. Compare them and the decision in one table: each constraint, each criterion that the original
   reasoning used, and the cost of undoing. Fill cells only from confirmed statements; leave the
   others as "unknown".
4. Check which alternatives the original reasoning considered, and whether in their best form.

Done when an advocate of each alternative would accept your description, and each is better than
the decision in at least one row. Replace one that is not: it is a straw man.

Do not add up scores: a table of weights hides the one row that matters.

Write down: the alternatives, the table, and the rows in which the decision is not the best."""

FAILURE = """\
You have the checked statements and the alternatives.

Imagine that the decision was carried out, a year has passed, and everyone agrees that it was a
mistake.

Do:
1. Write at least five causes, at least one of each kind: a statement that was refuted or unknown;
   something that it depends on and no one here controls; the people who build, operate or use it;
   success (far more use than planned); something it made impossible later.
2. For each: the first sign that could be observed and when, what would prevent it, what could
   still be done then, and whether the damage could be undone.
3. Mark each as likely, possible or remote, with the reason.

Done when every cause has a sign that someone could notice, and at least one cause does not come
from the list of statements.

Do not list general risks ("the project is late"). Each cause names a mechanism of this decision.

Write down: causes with sign, prevention, remedy and mark; those that cannot be undone first."""

RECHECK = """\
You have findings: refuted and unknown statements, alternatives that win somewhere, causes of
failure. Before they become a verdict, they are checked as strictly as the decision was.

Do:
1. For each finding, write the best answer that the author of the decision would give. If that
   answer is right, drop the finding.
2. Drop each finding that would not change the decision, its conditions, or how it is monitored.
3. Open the evidence of each remaining finding again and confirm that it says what you wrote.
4. Take the three confirmed statements with the weakest evidence and check each with a second
   source. Correct the table if the result differs.
5. Ask whether you would judge the evidence the same way if the decision were the opposite one.

Done when each remaining finding has evidence that you have opened twice and an answer to the
author's objection.

Do not keep a finding because it took long to produce, and do not invent one because there is
none.

Write down: the remaining findings with evidence, what was dropped and why, what was corrected."""

VERDICT = """\
You have the remaining findings, the checked statements, the alternatives and the causes of
failure.

Do:
1. Write the verdict as the first sentence: keep, keep with conditions, change (to what),
   withdraw, or not decidable yet (what is missing and how to get it).
2. Give at most five reasons, each with the ids and the evidence it rests on.
3. For conditions: what must be true, how it is checked, who checks it, by when, and what is done
   if it is not.
4. List the signs to monitor, and for each the date or event at which to look.
5. Write what would change the verdict, what stayed unknown, and how confident you are and why. If
   the answers never reached high confidence, say so in the second sentence.

Done when someone who reads only this page can act on it and could find every fact in it.

Do not soften the verdict, do not balance it for the sake of balance, and do not bring up anything
that the earlier steps did not establish.

Write down: the verdict, on one page, for the people who decide."""


def answer(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the search for answers until they are well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "decision-critic",
    StepDef("structure", "Take the decision apart", [STRUCTURE], next={OK: "load"}),
    StepDef("load", "Find the statements that carry it", [LOAD], next={OK: "questions"}),
    StepDef(
        "questions", "Write the questions before the answers", [QUESTIONS], next={OK: "answer"}
    ),
    StepDef(
        "answer",
        "Answer the questions from evidence",
        [ANSWER, CONFIDENCE_SCALE],
        answer,
        {OK: "alternatives", Outcome.ITERATE: "answer"},
    ),
    StepDef(
        "alternatives", "Build the strongest alternatives", [ALTERNATIVES], next={OK: "failure"}
    ),
    StepDef("failure", "Assume that it failed", [FAILURE], next={OK: "recheck"}),
    StepDef("recheck", "Check your own findings", [RECHECK], next={OK: "verdict"}),
    StepDef("verdict", "Give the verdict", [VERDICT], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK],
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
