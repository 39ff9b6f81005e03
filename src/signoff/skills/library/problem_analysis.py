"""Finds the cause of a problem: from a symptom to a mechanism that has been switched on and off."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    MAX_ROUNDS,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until,
    repeat_until_confident,
)

DESCRIPTION = """\
Find the cause of wrong behavior: a bug, a flaky test, a slow request. Use it when the cause is
unknown. Do not use it to fix a known cause, or for an incident that is over (incident-review)."""

REPRODUCTIONS = ("not_tried", "not_reproduced", "sometimes", "always")

SYMPTOM = """\
The problem is the parameter `task` if there is one, else what the user reported. If it cannot be
told from that what was observed, ask for it.

Do:
1. Write the observation: what happened, where, when, how often, for whom. Copy messages, log
   lines and numbers verbatim, with time stamps.
2. Write the expectation and where it comes from: documentation, a test, an earlier version, or
   only the reporter's opinion. If nothing supports the expectation, say so: then this may be a
   request and not a problem.
3. Write what still works: the nearest input, user, version or environment that is not affected.
4. Record the environment: versions, commit, configuration, data, load. Take them from the
   affected system and not from memory.
5. Separate each observation from its interpretation. "The server hung" is an interpretation; "no
   reply within 60 s" is an observation.

Done when a stranger could tell from your text whether a given run shows the problem or not.

Do not name a cause, and do not read code in search of one. Do not change anything on the affected
system; save logs that will be rotated away.

Write down: observation, expectation and its source, what still works, environment,
interpretations that others offered (marked as such)."""

REPRODUCE = f"""\
You have a description of the symptom with which anyone can tell whether a run shows it.

Do, in each round:
1. Trigger the symptom with the recorded environment, the same input and the same steps.
2. If it appears, remove one thing at a time (data, configuration, steps, components) and keep
   each removal after which it still appears. The rest is the smallest reproduction.
3. If it does not appear, change one thing at a time toward the affected system: version, data
   size, time zone, concurrency, permissions, order, leftover state. Note each attempt.
4. If it appears sometimes, run it often enough to give a rate ("7 of 50"), and look for what
   changes the rate.
5. Write it as one command or script, and run that from a clean state.

Done when one command shows the symptom and the same command shows its absence in the nearest
unaffected case.

Do not accept another error in the same place as a reproduction: compare it with the symptom word
for word. Do not test on production data or systems without permission.

Write down: the command, its output, the rate, and every attempt with its result.

At the end of each round, report `reproduction`:
- `not_tried`: no attempt has been made.
- `not_reproduced`: it did not appear, and there are attempts left to make.
- `sometimes`: it appears at a known rate, and the rate could still be raised.
- `always`: one command shows it every time, or at a rate that is high enough to test against.
Before `always`, do another round; there are at most {MAX_ROUNDS}. If it was not reproduced by
then, the analysis continues from records (logs, traces, dumps, data), and the report says so.
Repeat in each round what earlier ones found. Once you have reported `always`, continue with the
next step."""

BOUNDARY = """\
You have a symptom and, if possible, a command that reproduces it.

Do:
1. Make a table with the columns "has the problem" and "could have it, but does not", and the
   rows: what (function, input, type of data), where (host, platform, client, component), when
   (first seen, times of day, after what), how much (share, size, trend).
2. Fill each cell with an observation. Where the right column is empty, make the comparison: the
   previous version, another platform, a smaller input, another user.
3. List everything that changed in the time before the first occurrence: commits, dependencies,
   configuration, data, load, certificates, hardware, people. Use the history, not memory.
4. If there is a good and a bad version, bisect; let the reproduction decide each step.
5. For each row, write the difference between the two columns in one line.

Done when every row has an observed difference or a note that none could be found and how you
looked.

Do not fill a cell with what you expect. Do not stop at the first change that fits in time.

Write down: the table, the differences, the changes with times, the result of bisecting."""

HYPOTHESES = """\
You have a symptom, a reproduction or records, and a table of where the problem is and is not.

Do:
1. Write at least three hypotheses with different mechanisms: not three places for one idea. One
   of them blames the part that everyone trusts: the test, the measurement, the data, the tool.
2. For each, write the chain from cause to symptom, step by step, so that each link can be
   observed.
3. Check each against every row of the table: it must explain why the problem occurs there, and
   why it does not occur elsewhere. Write what it leaves unexplained.
4. For each, write a prediction that differs from what the other hypotheses predict and that you
   have not observed yet.
5. Order the tests of these predictions: first the one that excludes most hypotheses for least
   work.

Done when each hypothesis has a chain, a prediction that could fail, and a test that takes a
stated amount of work.

Do not drop a hypothesis because it is unlikely; drop it because an observation contradicts it. Do
not write code for a fix: a symptom that goes away is no proof of its cause.

Write down: hypotheses H1, H2, ... with chain, unexplained rows, prediction and test, in order."""

INVESTIGATE = """\
You have hypotheses H1, H2, ... with predictions and tests in order.

Do, in each round:
1. Write what you expect each hypothesis to predict for the next test, then run it.
2. Record command, output and what it excludes. Change one thing per test and undo it afterwards.
3. Cross out hypotheses that were contradicted, with the observation. Do not rescue one by adding
   a special case unless the special case makes a prediction of its own.
4. For a hypothesis that survives, observe the links of its chain one by one: log, trace,
   debugger, query. An unobserved link is the next thing to test.
5. If all are crossed out, write new ones from what you have learned; if a result is surprising,
   follow it before the list.
6. Before you report high confidence, try to refute the survivor: find a case in which the cause
   is present and the symptom absent, or the reverse.

Done when one hypothesis remains, each link of its chain was observed, and it explains every row
of the table.

Do not read code and conclude from it alone: run it. Do not count agreement with what is known
already as support; every hypothesis was made to fit that.

Write down: each test with prediction, result and conclusion; which hypotheses are left."""

CAUSE = """\
You have one remaining hypothesis, or several if the investigation ran out of rounds.

Do:
1. Switch the cause on and off in the reproduction, and nothing else: the symptom must appear and
   disappear with it, each at least three times, or often enough for its rate.
2. Write the causal chain from the origin to the symptom, each link with its evidence (file and
   line, output, record).
3. Separate the trigger (why now), the cause (the flaw without which the trigger would be
   harmless) and the conditions that made it worse or hid it.
4. Ask of the cause: why was this possible? Stop at the first answer that someone here can change.
5. Write why it was not caught: which test, check, alarm or review should have, and why it did
   not.

Done when the switch worked in both directions and no link of the chain is a guess. If the switch
cannot be made, say which links are inferred and what would prove them.

Do not name a person as the cause. Do not present the last change as the cause if it only exposed
an older flaw.

Write down: trigger, cause, conditions, chain with evidence, result of switching, why it was not
caught."""

SIBLINGS = """\
You have a cause with its evidence.

Do:
1. Describe the flaw as a pattern, without the names of this case: "a cache key that lacks the
   tenant", "a time-out longer than that of the caller".
2. Search the whole code base, configuration and data for the pattern, with at least two different
   searches (text, structure, history of the same author or copy).
3. For each hit, decide by reading: same flaw, similar but safe (why), or not related.
4. Find out what the problem has already done: wrong data stored, messages lost, users affected.
   Give numbers and the query that produced them.

Done when every hit has a decision and the damage has a number or a reason why it cannot have one.

Do not repair anything yet, and do not report hits that you have not read.

Write down: the pattern, the searches, hits with decisions, the damage."""

FIX = """\
You have the cause, its siblings and the damage.

Do:
1. Write at least two ways to fix the cause, and one way to contain the problem until then.
2. For each: what changes (files, configuration, data), what could break, how to undo it, how long
   it takes, and whether it removes the cause, the trigger or only the symptom.
3. Write the test that fails now and passes with the fix. If you can, run it and show that it
   fails for the right reason.
4. Write how siblings and damaged data are dealt with.
5. Write the check that would have caught it: test, assertion, alarm, type, limit.
6. Recommend one, with the reason.

Done when an engineer who was not here could implement the recommendation and would know when it
works.

Do not recommend retries, longer time-outs or catching the error, unless the cause is outside your
control and you say so.

Write down: the options, the failing test with its output, the recommendation, prevention."""

REPORT = """\
You have everything: symptom, reproduction, tests, cause, siblings, damage and recommendation.

Do:
1. First paragraph: the cause in one sentence a newcomer understands, how sure you are and why,
   and what to do now.
2. Then: symptom, reproduction (the command), causal chain with evidence, hypotheses that were
   excluded and by what, siblings, damage, recommended fix with its test, prevention.
3. Mark each statement that is inferred and not observed. If the problem was never reproduced, or
   confidence stayed below high, say so in the first paragraph and name the next test to make.
4. Run the commands in the report once more and compare their output with what you quote.

Done when every claim in the report has its evidence next to it and every command in it was run
again.

Do not tell the story of the search; the reader wants the result. Do not leave the reproduction,
debug output or temporary changes behind in the project: list what you removed.

Write down: the report."""


def reproduce(
    ctx: StepContext,
    reproduction: Annotated[
        str, Arg("whether the symptom appears on demand", choices=REPRODUCTIONS)
    ] = "not_tried",
    iteration: Iteration = 1,
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the attempts until the symptom appears on demand."""
    return repeat_until(reproduction == "always", ctx, iteration)


def investigate(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the tests until one hypothesis is well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, ITERATE = Outcome.OK, Outcome.ITERATE

WORKFLOW = Workflow(
    "problem-analysis",
    StepDef("symptom", "Describe the symptom", [SYMPTOM], next={OK: "reproduce"}),
    StepDef(
        "reproduce",
        "Reproduce it",
        [REPRODUCE],
        reproduce,
        {OK: "boundary", ITERATE: "reproduce"},
    ),
    StepDef("boundary", "Find where it occurs and where not", [BOUNDARY], next={OK: "hypotheses"}),
    StepDef("hypotheses", "Write competing hypotheses", [HYPOTHESES], next={OK: "investigate"}),
    StepDef(
        "investigate",
        "Refute the hypotheses",
        [INVESTIGATE, CONFIDENCE_SCALE],
        investigate,
        {OK: "cause", ITERATE: "investigate"},
    ),
    StepDef("cause", "Prove the cause", [CAUSE], next={OK: "siblings"}),
    StepDef("siblings", "Look for the same flaw elsewhere", [SIBLINGS], next={OK: "fix"}),
    StepDef("fix", "Compare the fixes", [FIX], next={OK: "report"}),
    StepDef("report", "Write the report", [REPORT], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK],
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
