"""Changes the structure of code without changing what it does, in small verified steps."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import FIX_FINDINGS, TASK, repeat_until
from signoff.skills.qr.gate import QRGate
from signoff.skills.state import STATE_DIR, state_directory

DESCRIPTION = """\
Change the structure of code without changing what it does. Use it when the structure makes
changes hard. Do not use it for features or fixes, to rewrite (planner), or before there are
tests (test-designer)."""

NOTES = "refactor.md"

SKELETON = """\
# Refactoring

## Goal

## Baseline

## Findings

## Design

## Log

## Comparison
"""

ROUNDS = 12
"""Changes that one pass makes at most; more is a plan with milestones."""

BASELINES = ("not_run", "red", "gaps", "green")
PROGRESS = ("not_started", "reverted", "more", "done")

GOAL = f"""\
The task is the parameter `task` if there is one, else what the user asked for. `{NOTES}` in the
state directory holds all notes; later steps and reviewers rely on it and on nothing else.

Do:
1. Write the pain as something that happened: a change that took a week, a defect that came back
   twice, a test that needs ten doubles. Name commits, tickets or people. "The code is messy" is
   not a pain.
2. Write the next change that this should make easy, and how one will see that it did: files to
   touch, lines, doubles, build time. Measure the value of today.
3. Write what must not change: public interfaces, file formats, messages that others parse,
   timing, order, the database. For each, who relies on it.
4. Draw the boundary: the files that may change, and those that may not.
5. Look for work in progress on these files: open branches, pull requests, uncommitted changes.

Done when someone else could say after the work whether the goal was reached, from your text
alone.

Do not read the code in order to find more to improve. If there is no pain and no planned change,
tell the user that this is not worth doing, and why.

Write into `{NOTES}`: "Goal", with pain, measure and its value today, what must not change, the
boundary."""

BASELINE = f"""\
`{NOTES}` in the state directory has the goal, the boundary and what must not change. Code whose
behavior no test observes cannot be refactored, only changed.

Do, in each round:
1. On a clean working copy, run the whole test suite, type checker and linter. Record commands,
   results and times. Run the suite twice: a flaky test is no safety net.
2. For each behavior that must not change, find the test that would fail if it did. Prove it:
   break the code on purpose, see the test fail, restore the code.
3. Where there is none, add a test that pins what the code does now, including results that look
   wrong; mark those and tell the user. Test at the boundary of what will change, so that the test
   survives the change.
4. Commit the new tests separately, before any other change.

Done when every behavior that must not change has a test that was seen to fail, and everything is
green.

Do not fix bugs that you find: pin them, list them, leave them. Do not change the code to make it
testable, beyond what a tool does safely (extract, rename, add a parameter with a default).

Write into `{NOTES}`: "Baseline", with the commit, commands and results, and for each behavior its
test.

At the end of each round, report `baseline`:
- `not_run`: the suite has not been run.
- `red`: something fails on the clean working copy. Stop and ask the user unless it is unrelated.
- `gaps`: green, but a behavior has no test that was seen to fail.
- `green`: done as described above.
Before `green`, do another round. Once you have reported `green`, continue with the next step."""

FINDINGS = f"""\
`{NOTES}` in the state directory has the goal and the baseline.

Do:
1. Read all the code inside the boundary, and its callers, in full.
2. Try the next change from the goal on paper: list each place that it would touch and why. The
   places that should not have to be touched are the first findings.
3. Look for causes: knowledge kept in two places; a module that changes for two reasons; a
   dependency cycle; a flag or type that callers test again and again; data that is passed through
   functions that do not use it; a name that is wrong; code that nothing runs (prove it).
4. For each finding: file and line, what it costs (which change or defect of the goal or the
   history), and how many other places depend on it.
5. Order them by what they contribute to the pain. Strike out those that contribute nothing.

Done when the findings together explain the pain, and each has a cost that was observed.

Do not list violations of principles that cost nothing here. Length or style alone is no finding.

Write into `{NOTES}`: "Findings" F1, F2, ... with evidence and cost, and what was struck out."""

DESIGN = f"""\
`{NOTES}` in the state directory has goal, baseline and findings.

Do:
1. Sketch at least two target structures, one of which only deletes, merges or moves code. For
   each: modules and their responsibility in one sentence, who calls whom, where each kind of
   knowledge is kept, which findings it removes.
2. Try the next change from the goal on each and count the places. Compare with today.
3. Choose. Write why, and what the choice makes harder.
4. Write the sequence of changes: each small enough to be reviewed in minutes, each leaving
   everything green, each useful if the work stopped there. For each: what moves where, which
   findings it removes, how to undo it, which tests run.
5. For an interface that others use, keep the old form until its users have moved, and write when
   it goes.
6. Mark the riskiest change and put it as early as possible.

Done when the sequence leads from the code of today to the target without a step that has to be
taken in one leap, and the measure of the goal improves.

Do not add abstractions for changes that no one plans. Do not mix in a new library, a new style or
a bug fix.

Write into `{NOTES}`: "Design", with the alternatives, the choice and the numbered sequence."""

REVIEW_DESIGN = f"""\
Review the design of a refactoring before any code changes. `{NOTES}` in the state directory has
the goal, the baseline, the findings and the design; check it against the code it names.

When you write the items of the review down, cover at least these:
- MUST: each behavior that must not change has a test that was seen to fail.
- MUST: each change in the sequence leaves everything green and can be undone alone.
- MUST: no change in the sequence alters behavior, and no caller outside the boundary breaks.
- SHOULD: the design removes the findings it claims to; try the next change of the goal on it.
- SHOULD: no simpler alternative reaches the goal; nothing is built for a change no one plans.
- SHOULD: each finding is true: open the file and line.
- COULD: names say what things are, in the words that the code base uses already.

Judge the design that is written, not the one you would have made. A finding says what is wrong,
where, and what would have to be true for it to pass."""

APPLY = f"""\
`{NOTES}` in the state directory has the design with its sequence of changes, and a log.

Do, in each round, exactly one change:
1. Read the log. Take the next change of the sequence. If it touches more than you can review in
   minutes, split it and do the first part.
2. Make it with the tools of the language where they exist (rename, move, extract), else by hand.
   Move code first and edit it afterwards, in separate commits, so that the diff shows each.
3. Run the tests that touch it, the type checker and the linter; after every third change and
   after the riskiest one, the whole suite.
4. Green: read your own diff line by line, look for changed behavior (order, defaults, errors,
   logging, what is evaluated when), then commit with what moved where.
5. Red: undo the change completely. Do not debug forward. Write what went wrong and split it.
6. If the design turns out to be wrong, stop changing code, correct "Design" in the notes with the
   reason, and continue from there.

Done when the sequence is finished, old forms without users are deleted, and nothing is left half
moved.

Do not change a test in the same commit as the code that it tests, except for names and imports. A
test that has to change its expectation means that behavior changed: undo. Do not improve what the
design does not name; write it into the notes.

Write into `{NOTES}`: "Log", one line per change: commit, what, result.

At the end of each round, report `progress`:
- `not_started`: no change has been made.
- `reverted`: the change was undone; the next round takes a smaller one.
- `more`: the change is committed, and the sequence is not finished.
- `done`: the sequence is finished, and everything is green.
Before `done`, do another round; there are at most {ROUNDS}. If they do not suffice, stop at a
green commit: the report says what is left. Once you have reported `done`, continue with the next
step."""

COMPARE = f"""\
`{NOTES}` in the state directory has the baseline and the log of changes.

Do:
1. Run the same commands as in the baseline and compare: same tests, same results, none removed or
   skipped. Explain every difference.
2. Compare the diff of the tests since the baseline. Any changed expectation is a changed
   behavior.
3. Compare what must not change directly, old against new: public names and signatures, command
   output, files, queries, messages. Run both versions on the same inputs and compare the results.
4. Measure speed and memory where the goal or the boundary mentions them, both versions in turns.
5. Measure the goal: try the next change on the new code, on paper or on a branch you throw away.
   Compare with the value of the start.
6. Search for remains: unused code, old names in comments, documents and configuration.

Done when each behavior that must not change was compared, and the measure of the goal has a new
value.

Do not explain a difference away. If behavior changed, undo or fix that change and compare again.
If the goal was not reached, say so.

Write into `{NOTES}`: "Comparison", with commands, results, and the measure before and after."""

REVIEW_CODE = f"""\
Review a finished refactoring. `{NOTES}` in the state directory has goal, baseline, design, log
and comparison; review the diff from the baseline's commit to the current one.

When you write the items of the review down, cover at least these:
- MUST: no behavior changed: order of effects, defaults, errors and their types, what is evaluated
  when, concurrency, output. Read every hunk that is not a pure move.
- MUST: no test lost an expectation, was skipped or deleted; run the suite.
- MUST: public names and formats are the same, or the old form still works.
- SHOULD: the findings that the design names are gone; open the places.
- SHOULD: nothing is half moved: no duplicate, no unused code, no old name in documents.
- SHOULD: nothing outside the boundary changed without a reason in the log.
- COULD: each commit can be understood and undone alone.

A finding says what is wrong, at which file and line, and how to see it."""

REPORT = f"""\
`{NOTES}` in the state directory has goal, findings, design, log, comparison and the reviews.

Do:
1. First sentence: whether the goal was reached, with the measure before and after.
2. Then: what moved where, in five to ten lines, for someone who knew the old structure; what was
   deleted; what others have to change and until when the old form works.
3. Evidence that behavior is the same: commands and results, inputs that were compared, tests that
   were added.
4. What was left: changes of the sequence that were not made, bugs that were found and pinned,
   ideas that were out of scope, findings of the reviews that did not block. Each with file and
   line.
5. Run the whole suite once more on the final commit, with a clean working copy, and quote the
   result.

Done when the user can merge or refuse with this text and the diff alone.

Do not claim that the code is cleaner; say what is easier now and show it. Do not hide a change of
behavior in a list of improvements.

Write down: the report."""

BaselineState = Annotated[str, Arg("whether the behavior is pinned", choices=BASELINES)]
Progress = Annotated[str, Arg("how far the sequence of changes is", choices=PROGRESS)]
Round = Annotated[
    int, Arg("the round of this step; leave it out in a run, which counts", min=1, max=ROUNDS)
]
Result = tuple[Outcome, dict[str, Any]]


def baseline(ctx: StepContext, baseline: BaselineState = "not_run", iteration: Round = 1) -> Result:
    """Repeats the work on tests until behavior is pinned."""
    return repeat_until(baseline == "green", ctx, iteration, ROUNDS)


def apply(ctx: StepContext, progress: Progress = "not_started", iteration: Round = 1) -> Result:
    """Repeats, one change at a time, until the sequence is finished."""
    return repeat_until(progress == "done", ctx, iteration, ROUNDS)


FIX_DESIGN = FIX_FINDINGS.format(phase="refactor-design", what="the design", notes=NOTES)
FIX_CODE = FIX_FINDINGS.format(phase="refactor-code", what="the code", notes=NOTES)
OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE

WORKFLOW = Workflow(
    "refactor",
    StepDef("goal", "State the pain and the boundary", [GOAL], next={OK: "baseline"}, edits=True),
    StepDef(
        "baseline",
        "Pin the behavior",
        [BASELINE],
        baseline,
        {OK: "findings", ITERATE: "baseline"},
        edits=True,
    ),
    StepDef("findings", "Find what causes the pain", [FINDINGS], next={OK: "design"}, edits=True),
    StepDef(
        "design", "Compare target structures", [DESIGN], next={OK: "review_design"}, edits=True
    ),
    StepDef(
        "review_design",
        "Review the design",
        [REVIEW_DESIGN],
        QRGate(phase="refactor-design"),
        {OK: "apply", FAIL: "fix_design"},
        edits=True,
    ),
    StepDef("fix_design", "Fix the design", [FIX_DESIGN], next={OK: "review_design"}, edits=True),
    StepDef(
        "apply", "Make one change", [APPLY], apply, {OK: "compare", ITERATE: "apply"}, edits=True
    ),
    StepDef("compare", "Compare old and new", [COMPARE], next={OK: "review_code"}, edits=True),
    StepDef(
        "review_code",
        "Review the result",
        [REVIEW_CODE],
        QRGate(phase="refactor-code"),
        {OK: "report", FAIL: "fix_code"},
        edits=True,
    ),
    StepDef("fix_code", "Fix the result", [FIX_CODE], next={OK: "compare"}, edits=True),
    StepDef("report", "Report to the user", [REPORT], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("refactor", {NOTES: SKELETON}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
