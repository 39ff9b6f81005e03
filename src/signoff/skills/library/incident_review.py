"""Reviews an incident after it is over: what happened, what made it possible, what to change."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    NOTES_IN_REPLY,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until_confident,
)
from signoff.skills.state import STATE_DIR, state_directory

DESCRIPTION = """\
Review an incident: what happened, what made it possible, what to change. Use it after an outage
or a loss of data. Do not use it while it lasts, or for a bug that harmed no one
(problem-analysis)."""

FILES = {
    "evidence.md": """\
# Evidence

## Incident
(what, when, impact with sources)

## Timeline
(time with zone, event, source)

## Conditions
(X1, X2, ...: condition, what it led to, evidence, shown / likely / assumed)

## Explanations that were dropped

## Response
(detection, diagnosis, recovery: what was slow, what helped)

## Actions
(condition, change, kind, owner, how it is verified)

## Open questions
""",
    "review.md": "",
}

INCIDENT = """\
The incident is that of the parameter `task` if there is one, else what the user asked about.
`evidence.md` in the state directory holds the notes; later steps and another agent rely on it
alone.

Do:
1. Make sure that it is over: the harm has stopped, and nothing is left that would start it
   again today. If not, stop here and tell the user what is still going on.
2. Secure evidence that will disappear: logs, dashboards, chat, deploy records, data, the state
   of machines. Copy it, or note where it is and when it expires.
3. Describe the incident in three sentences: what users experienced, since when, until when.
4. Measure the impact: who and how many, how long, which data, what it cost. Give the source of
   each number, or write "unknown" and who could know.
5. Note the times at which it began, was first visible, was noticed, was understood, was
   contained and was over, each with its source.

Done when each number and time has a source or is marked unknown, and evidence that expires has
been secured.

Do not write why it happened. Do not estimate numbers to make the description complete.

Write into `evidence.md`: "Incident"."""

TIMELINE = """\
Read "Incident" in `evidence.md` in the state directory, and establish what happened in which
order.

Do:
1. Begin before the incident: when was each part that failed built, changed, configured or last
   known to work? End when normal operation was confirmed.
2. Write one line for each event: time with time zone, what happened, source (log line, commit,
   message, dashboard). Convert all times to one zone, and check clocks against an event that
   two sources recorded.
3. For each decision of a person or a program, write what was visible to them at that moment,
   and what they expected. Take it from the record or ask them; do not infer it from the
   outcome.
4. Mark gaps longer than the events around them explain, and places where sources disagree.
5. Mark the turning points: where it began, got worse, could have been noticed, got better.

Done when each line has a source, each gap is marked, and someone who was there would recognize
the course of events.

Do not use words that judge ("failed to", "should have", "only", "obviously"), and do not write
causes into the timeline. Name roles ("the operator on call"), not persons.

Write into `evidence.md`: "Timeline", and questions for people under "Open questions"."""

CONDITIONS = """\
Read "Timeline" in `evidence.md` in the state directory. Incidents have several conditions, each
necessary and none sufficient. In each round, follow the next turning points back to theirs.

Do:
1. For each turning point, ask what had to be true for it to happen this way, and write each
   answer as a condition (X1, X2, ...) with its evidence. Expect more than one; draw branches,
   not a chain.
2. Ask the same about each condition, until you reach something that can be changed here, or
   that is outside your control and has to be lived with.
3. Where a branch ends in what a person did, continue: what made it the sensible thing to do
   with what they saw? Missing or misleading information, a tool that made it easy, a habit that
   had worked, time pressure, a rule that could not be followed. "Human error" and "did not
   follow the process" never end a branch.
4. Cover all kinds: what triggered it; what had been waiting for a trigger; why no check stopped
   it before; why it spread; why it was not noticed earlier; why it lasted so long.
5. Test each condition: without it, would the incident have been absent, smaller or shorter? If
   not, remove it.
6. Mark each as "shown" (evidence, or reproduced), "likely" (fits all the evidence, another
   explanation is possible) or "assumed".

Done when each turning point has its conditions, each branch ends as in 2, and each kind in 4
has a condition or a reason why there is none.

Do not stop at the first explanation that fits, nor at the change that triggered it: thousands
of changes go well. Do not reproduce anything on a system that users rely on.

Write into `evidence.md`: "Conditions"."""

CHALLENGE = """\
Read `evidence.md` in the state directory. Now that the story is known, everything seems to fit
it. Try to break it.

Do:
1. For each condition that is shown or likely, name an observation that would be impossible if
   it were true, and look for it.
2. For each turning point, write a second explanation of the same evidence, and what would tell
   the two apart. Look there.
3. Go through the timeline and list the events that the conditions do not explain.
4. Compare with times when the same conditions were present and nothing happened. What differed?
5. Compare with earlier incidents of this system: which conditions have been found before, and
   what became of the actions decided then?
6. Correct the marks. Move what did not hold to "Explanations that were dropped", with the
   reason.

Done when each condition has survived a search that could have refuted it or is marked
"assumed", and each event is explained or listed as unexplained.

Do not keep a condition because an action for it is already popular.

Write into `evidence.md`: the corrected "Conditions" and "Explanations that were dropped"."""

RESPONSE = """\
Read `evidence.md` in the state directory. How long an incident hurts depends on how it is
noticed and handled.

Do:
1. Detection: who or what noticed it, how long after it became visible, and what signal was
   there before? Was there an alert that no one saw, that came too late, or one among too many?
2. Diagnosis: list what was suspected in which order, and what decided between the suspicions.
   What information was missing or misleading, what took long to get?
3. Recovery: which measures were tried, which helped, which made it worse? What stood in the way
   of the fastest one (access, knowledge, fear of side effects, a step that could not be
   undone)?
4. Communication: when did those affected learn of it, and was it right?
5. What went well, and was it by design or by luck? Luck is a condition: add it.

Done when each interval between two times under "Incident" has an explanation, and each new
condition has evidence.

Do not measure the response by what is known now; measure it by what could be known then.

Write into `evidence.md`: "Response", and new entries under "Conditions"."""

ACTIONS = """\
Read "Conditions" and "Response" in `evidence.md` in the state directory, and derive what to
change.

Do:
1. For each condition that can be changed, write a possible change and its kind: it removes the
   condition, stops the effect, limits the damage, makes it visible earlier, or shortens
   recovery.
2. Prefer changes to the system over rules for people, and those that also help against other
   incidents. "Be careful", "train everyone" and "remind the team" are not changes.
3. For each: the condition it addresses, effort, side effects, how it will be verified (a test,
   an exercise, a number by a date), and the role that should own it.
4. Choose three to seven. At least one must work if the same trigger came tomorrow, and at least
   one must shorten detection or recovery.
5. List the conditions that you leave as they are, with the reason.

Done when each chosen action names its condition and a check that can fail, and each condition
has an action or a reason.

Do not choose an action for an assumed condition before it is checked: the check is the action.
Do not assign owners or dates in the name of others; propose them.

Write into `evidence.md`: "Actions"."""

WRITE = """\
Read `evidence.md` in the state directory and write the review as `review.md` next to it. Its
readers were not there: colleagues who may meet the same conditions elsewhere, and those who
decide about the actions.

Do:
1. Summary in at most six sentences: what users experienced, impact, what made it possible (more
   than one condition), how it ended, what will change.
2. Impact and times, with sources and what is unknown.
3. Timeline: the events that the rest of the review refers to.
4. Conditions, each with its evidence and mark, in an order in which the reader understands how
   they worked together. Then detection and recovery, and what went well.
5. Actions with condition, kind, proposed owner and check. Then what is left as it is, and why.
6. Open questions, and explanations that were dropped.

Done when each statement can be traced to an entry of `evidence.md`, and the summary can be
understood alone.

Do not name persons; name roles. Do not write "root cause", "should have" or "failed to". Do not
add anything that is not in the notes, and do not make likely things sound certain.

Write: `review.md`."""

EXAMINE = """\
You examine the review of an incident. `review.md` and `evidence.md` are in the state directory.
You were not there and did not write them.

Check:
1. Evidence: follow each condition, number and time to its source in `evidence.md`, and open
   those sources that you can reach. What is stated more firmly than its source?
2. Completeness: is an event of the timeline unexplained and not listed as such? Does a branch
   end in what a person did? Does it explain the trigger, but not why nothing stopped it, why it
   was noticed late or why it lasted?
3. Another explanation: can the same evidence be explained without one of the conditions?
4. Fairness: would the people involved agree with the account of what they saw and did? Is there
   a name, a judgment in hindsight, or a sentence that makes one person the cause?
5. Actions: does each address a condition that is shown or likely, and could its check fail?
   Would the incident have been absent, smaller or shorter with these actions in place?

The verdict is "pass" if none of these points has a problem that a reader would act wrongly on.
Otherwise it is "fail", with one line in the notes for each problem: the passage, what is wrong,
the evidence.

If you cannot read the files, the verdict is "fail" with that reason. Do not fail the review for
style, length or layout. Do not edit the files."""

REVISE = """\
The review of the incident did not pass; the notes of the verdict list the problems. `review.md`
and `evidence.md` are in the state directory.

Do, for each problem:
1. Go to the evidence, not to the wording. If a statement is not supported, find support, lower
   its mark, or remove it.
2. If a branch ends too early or an event is unexplained, continue the search for conditions
   there, in `evidence.md` first.
3. If an action does not follow, change it or drop it.
4. If the examiner is wrong, write down the evidence that shows it, so that the next one finds
   it.
5. Then bring `review.md` in line with `evidence.md`, including the summary.

Done when each problem has led to a change or to an answer with evidence, and both files agree.

Do not answer a lack of evidence with more careful words alone.

Write: both files."""

HANDOVER = """\
Read `review.md` in the state directory and hand it over to the user.

Do:
1. Put the document where such reviews are kept, if the user or the project says where; else
   show it.
2. Ask the user to have it read by those who were involved, before anyone else gets it.
3. List what needs a decision: actions without an owner or a date, open questions and who could
   answer them, evidence that expires and when.
4. For each action, propose where it is tracked and when someone looks whether its check holds.
5. If a condition exists in other systems that you have seen, name them.
6. Say what the review could not establish, and how confident it is in its main conditions.

Done when the user knows what to decide, whom to ask, and when to look again.

Do not create tickets, send messages or change systems unless the user asks for it."""


def conditions(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the search until the conditions are well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "incident-review",
    StepDef("incident", "Describe the incident", [INCIDENT, NOTES_IN_REPLY], next={OK: "timeline"}),
    StepDef(
        "timeline", "Establish the timeline", [TIMELINE, NOTES_IN_REPLY], next={OK: "conditions"}
    ),
    StepDef(
        "conditions",
        "Find what made it possible",
        [CONDITIONS, CONFIDENCE_SCALE, NOTES_IN_REPLY],
        conditions,
        {OK: "challenge", Outcome.ITERATE: "conditions"},
    ),
    StepDef(
        "challenge",
        "Try to break the explanation",
        [CHALLENGE, NOTES_IN_REPLY],
        next={OK: "response"},
    ),
    StepDef(
        "response",
        "Review detection and recovery",
        [RESPONSE, NOTES_IN_REPLY],
        next={OK: "actions"},
    ),
    StepDef("actions", "Derive what to change", [ACTIONS, NOTES_IN_REPLY], next={OK: "write"}),
    StepDef("write", "Write the review", [WRITE, NOTES_IN_REPLY], next={OK: "examine"}, edits=True),
    StepDef(
        "examine",
        "Have the review examined",
        [EXAMINE],
        Dispatch(AgentRole.QUALITY_REVIEWER),
        {OK: "handover", Outcome.FAIL: "revise"},
    ),
    StepDef(
        "revise",
        "Correct the review",
        [REVISE, NOTES_IN_REPLY],
        next={OK: Edge("examine", bound=3, on_limit="ask")},
        edits=True,
    ),
    StepDef("handover", "Hand it over", [HANDOVER, NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("incident-review", FILES),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
