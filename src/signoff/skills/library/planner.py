"""Plans a change before it is made: read code, decide, divide into milestones, have it reviewed.

The plan is in `plan.json` of the state directory, what it rests on in `context.json`. Reviewers
check the plan three times: its design, its code-level detail and its documentation.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.parts import (
    CONFIDENCE_SCALE,
    FIX_FINDINGS,
    TASK,
    ConfidenceLevel,
    Iteration,
    repeat_until_confident,
)
from signoff.skills.qr.gate import QRGate
from signoff.skills.state import STATE_DIR, state_directory

DESCRIPTION = """\
Plan a change so that agents who were not there can carry it out. Use it for work of more than a
day, or across many files. Do not use it for small changes, or while it is open what to build
(deepthink)."""

CONTEXT, PLAN = "context.json", "plan.json"

FIELDS = (
    "task acceptance constraints out_of_scope facts conventions tests assumptions open_questions"
)
EMPTY_CONTEXT: dict[str, list[str]] = {field: [] for field in FIELDS.split()}

EMPTY_PLAN: dict[str, Any] = {
    "overview": "",
    "planning_context": {
        "decisions": [],
        "rejected_alternatives": [],
        "constraints": [],
        "risks": [],
    },
    "invisible_knowledge": {"system": "", "invariants": [], "tradeoffs": []},
    "milestones": [],
    "waves": [],
}

START = f"""\
The task is the parameter `task` if there is one, else what the user asked for. The state
directory has two files that the whole plan is kept in: `{CONTEXT}`, what is known, and `{PLAN}`,
what will be done. Later steps and reviewers rely on these files and on nothing else.

Do, in `{CONTEXT}` (each field is a list of sentences; a field may stay empty, none may be
removed):
1. `task`: what is wanted and why, in the user's words. Quote; do not improve it.
2. `acceptance`: how the user will see that it is done, each as something that can be run or
   looked at. If the user gave none, propose some and mark them "proposed".
3. `constraints`: what must hold (compatibility, speed, deadline, dependencies, style rules), each
   with who or what says so.
4. `out_of_scope`: what a reader might expect and will not be done.
5. `open_questions`: what the task leaves open. Do not ask yet: the code answers some of them.

Done when someone could tell from these fields alone whether a finished change fulfills the task.

Do not think about the solution, and do not read code yet.

Write both files as valid JSON at every step; read them back after writing."""

EXPLORE = f"""\
`{CONTEXT}` in the state directory has the task, acceptance, constraints and open questions. A
plan that was made without reading the code is a guess.

Do, in each round:
1. Find where the behavior of the task begins (command, request, event) and follow it through
   every function to its effects. Read these files in full, not in excerpts.
2. Find everything that depends on what will change: callers, tests, configuration, stored data,
   documents, other programs.
3. Find how the project does such things already: the nearest similar feature, its tests, its
   error handling, its names. Read the rules for contributors.
4. Run the tests of the area, and write the command and its result down.
5. Check each claim of the task about the present state against the code.
6. Look at the history of these files: who tried this before, what was reverted, and why.

Add to `{CONTEXT}`, each entry with file and line or a command: `facts`, `conventions`, `tests`
(how to run them, what they cover, what they do not), `assumptions` (what you could not check, and
what would be different if it is false). Move questions that the code answered from
`open_questions` to `facts`.

Done when you could name every file that must change, why, and what would break if it were done
carelessly, and each fact has a reference.

Do not design. Do not conclude from names what a function does. Do not stop at the first place
that looks right: search for a second."""

DECIDE = f"""\
`{CONTEXT}` in the state directory has facts about the code and open questions.

Do:
1. Sort the open questions: the code can answer it (answer it now); either answer leads to the
   same plan (drop it); you can decide and the user can overrule cheaply (decide, with the
   reason); only the user can decide (scope, money, compatibility, what users see).
2. Ask the user the last kind, all at once, at most five. For each: the options, what each costs
   and makes impossible, and what you would choose. If you cannot reach the user, take the option
   that is easiest to undo and record it as an assumption.
3. Compare the constraints with the facts. Report a task that cannot be done as stated, with the
   evidence, before planning something else.

Write into `{PLAN}`: `planning_context.decisions`, each with what, why, by whom, and what would
reverse it; `planning_context.constraints`, those that limit the solution, with sources. Empty
`open_questions` in `{CONTEXT}`.

Done when no question is open whose answer would change the plan.

Do not ask what the code can tell. Do not ask for permission to continue. Do not hide a decision
in the wording of a milestone."""

APPROACH = f"""\
`{CONTEXT}` and `{PLAN}` in the state directory have facts, conventions, decisions and
constraints.

Do:
1. Write at least two approaches that differ in where the change is made or in what is kept where.
   One of them is the smallest change that fulfills the acceptance criteria.
2. For each, go through every acceptance criterion and constraint: how is it met? Then every fact
   about dependents: what happens to it?
3. For each, write how it fails: a crash halfway, old data, two users at once, bad input,
   rollback.
4. Choose. The simplest one that meets everything wins, unless a named, planned change needs more.
5. Write what a reader of the resulting code could not see in it: why it is built this way, what
   must always be true, what was given up.

Write into `{PLAN}`: `overview` (what will be different, in a paragraph);
`planning_context.rejected_alternatives` (each with the reason and what would make it right);
`planning_context.risks` (each with its sign and its remedy); `invisible_knowledge` (`system`: how
the parts work together; `invariants`; `tradeoffs`).

Done when a colleague who prefers the rejected approach would find their argument there, and the
chosen one meets every criterion and constraint.

Do not choose what you thought of first without having written the other. Do not add options,
layers or settings that no criterion needs."""

MILESTONES = f"""\
`{PLAN}` in the state directory has the approach; `{CONTEXT}` has the facts it rests on.

Do:
1. Divide the work into milestones. After each, everything works, all tests pass, and it could be
   released or left there. Put the riskiest assumption into the first one that can test it.
2. Write each into `milestones` of `{PLAN}` with: `id` (M1, M2, ...); `title`; `why`; `files`
   (paths that change, and for each what changes in a sentence; new files are marked);
   `requirements` (what is true afterwards, precise enough to be wrong); `acceptance` (commands to
   run and the result, or the observation to make); `tests` (each case with input and expected
   result, including failures and boundaries); `depends_on`; `undo`.
3. Cover every acceptance criterion of `{CONTEXT}` by a milestone, and name it there.
4. Put milestones that touch no common file and do not depend on each other into one wave: `waves`
   is a list of lists of ids.
5. Read the plan as the agent that carries out M2 and was not here. Add what that agent would have
   to ask.

Done when each path exists or is marked as new, each criterion is covered, each milestone has a
test that fails today, and the waves contain each milestone once.

Do not write a milestone "tests", "cleanup" or "integration": each brings its own. Do not write
"handle errors" or "update callers": name the errors and the callers."""

REVIEW_DESIGN = f"""\
Review the design of a plan. `{PLAN}` in the state directory is the plan, `{CONTEXT}` what it
rests on. Check both against the code; you may run it, but change nothing.

When you write the items of the review down, cover at least these:
- MUST: each acceptance criterion and constraint of `{CONTEXT}` is met by a named milestone.
- MUST: the facts are true. Open each reference that a milestone relies on.
- MUST: all files that have to change are listed: search for callers, tests, configuration, stored
  data and documents that no milestone mentions.
- MUST: after each milestone everything works, and data written by the old version can be read.
- MUST: decisions have reasons, and rejected alternatives are there in their best form.
- SHOULD: each requirement is precise enough to be wrong, and has a test with expected results
  that would fail today.
- SHOULD: failures are planned for: a crash halfway, bad input, two at once, undoing it.
- SHOULD: nothing is planned that no criterion needs; no simpler approach meets the same criteria.
- COULD: names and structure follow the conventions of the code base.

Judge the plan that is written. A finding says what is wrong, where in the plan, the evidence in
the code, and what would have to be true for it to pass."""

DETAIL = f"""\
`{PLAN}` in the state directory has milestones whose design was reviewed. This step adds what
their implementer needs to know about the code.

Do, for each milestone, in its field `code`, one entry per file:
1. The exact place: function, class or section as it is now, with the line. Open the file; do not
   write this from memory.
2. What it becomes: signatures, types, data formats, queries and messages in their final form; the
   order of operations where it matters; which error is raised or returned when.
3. For the parts that are easy to get wrong (concurrency, parsing, migrations, security, money),
   the code itself, and try it out where that is possible in a scratch copy.
4. What existing code is reused, with its place. Search before you plan something new.
5. What must not be touched although it looks related.
6. In `comments`: the reasons from `invisible_knowledge` that belong next to this code.

Then go through the milestones in order and check that each finds what it needs from those before
it: names, signatures and formats must be the same in all of them.

Done when two agents could implement two milestones of one wave at the same time, and the results
would fit together.

Do not write code that the implementer writes as well without it. Do not contradict the reviewed
design silently: if the code shows that it is wrong, change the design in `{PLAN}` and write the
reason under `planning_context.decisions`."""

REVIEW_CODE = f"""\
Review the code-level detail of a plan: the field `code` of each milestone of `{PLAN}` in the
state directory. Check it against the files it names; change nothing.

When you write the items of the review down, cover at least these:
- MUST: each place exists as described. Open every file and line.
- MUST: signatures, names and formats agree between milestones and with existing callers.
- MUST: code in the plan does what the requirement says, including at its boundaries and on
  errors. Try it out where possible.
- MUST: the requirements of the design are still met; nothing contradicts a decision.
- SHOULD: existing code that already does this is used.
- SHOULD: each test of the milestone would fail before and pass after the change.
- SHOULD: milestones of one wave do not touch the same file.
- COULD: names say what things are, in the words of the code base.

A finding says what is wrong, in which milestone and file, the evidence, and what would have to be
true for it to pass."""

DOCUMENTS = f"""\
`{PLAN}` in the state directory has reviewed milestones with code-level detail.

Do, for each milestone, in its field `documents`:
1. List each page, help text, example, schema, changelog and comment that is wrong or incomplete
   once the milestone is done. Search for the names, options and messages that change.
2. For each, write the new text, or its exact content if a writer fills in the words.
3. Say where each entry of `invisible_knowledge` will be found by the person who needs it: next to
   the code, in an architecture page, in a decision record. Each has exactly one place.
4. For what users will notice, write the line of the changelog, in their words.
5. Check the plan itself: could an agent that reads only `{PLAN}` and the repository carry it out?
   Resolve references to conversations, to "the above" and to files of the state directory.

Done when each entry of `invisible_knowledge` has its place, and no page would contradict the code
after any milestone.

Do not plan comments that repeat the code, or a page that no one was missing."""

REVIEW_DOCUMENTS = f"""\
Review the documentation in a plan: the field `documents` of each milestone of `{PLAN}` in the
state directory, and whether the plan can be understood alone. Change nothing.

When you write the items of the review down, cover at least these:
- MUST: each entry of `invisible_knowledge` and each decision that a maintainer will need has one
  place where it will be found.
- MUST: an agent that has only `{PLAN}` and the repository could carry out each milestone. Try it
  in your head for the two hardest ones and write what you would have to ask.
- SHOULD: no page, example, help text or schema is left wrong by a milestone. Search for the names
  that change.
- SHOULD: texts state facts about the result and not the history of the plan.
- COULD: texts follow the style of the project.

A finding says what is missing or wrong, where, and what would have to be true for it to pass."""

HAND_OVER = f"""\
`{PLAN}` in the state directory passed three reviews. `{CONTEXT}` has the acceptance criteria.

Do:
1. Check that `{PLAN}` is valid JSON, that `waves` contains each milestone once and in an order
   that respects `depends_on`, and that `open_questions` in `{CONTEXT}` is empty.
2. If the repository has changed since the plan was made, look at what changed in the files of the
   plan and correct it.
3. Present it to the user on one page: what will be different; the decisions, with those that you
   made for the user first; milestones in order with their acceptance; risks; what is not done;
   review findings that did not block (`qr-plan-design.json`, `qr-plan-code.json`,
   `qr-plan-docs.json`).
4. Ask for approval, and name the decision that is most expensive to change later.
5. After approval, the milestones are carried out wave by wave, each by an agent that gets
   `{PLAN}` and its id; a milestone is finished when its acceptance was run and its result shown.

Done when the user has approved the plan or said what to change.

Do not begin to implement before the approval. Do not shorten a risk to make the plan look better.

Write down: the page, and the path of the state directory."""


def explore(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the reading until the facts are well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, FAIL, ITERATE = Outcome.OK, Outcome.FAIL, Outcome.ITERATE
PlanStep = partial(StepDef, edits=True)  # plan and context are files


def review(step: str, title: str, text: str, phase: str, following: str) -> tuple[StepDef, StepDef]:
    """Returns a gate, and the step that fixes what it finds."""
    gate, fix = QRGate(phase=phase), f"fix_{step}"
    instructions = FIX_FINDINGS.format(phase=phase, what="the plan", notes=PLAN)
    return (
        PlanStep(f"review_{step}", f"Review {title}", [text], gate, {OK: following, FAIL: fix}),
        PlanStep(fix, f"Fix {title}", [instructions], next={OK: f"review_{step}"}),
    )


WORKFLOW = Workflow(
    "planner",
    PlanStep("start", "Write down the task", [START], next={OK: "explore"}),
    PlanStep(
        "explore",
        "Read the code",
        [EXPLORE, CONFIDENCE_SCALE],
        explore,
        {OK: "decide", ITERATE: "explore"},
    ),
    PlanStep("decide", "Settle open questions", [DECIDE], next={OK: "approach"}),
    PlanStep("approach", "Compare approaches", [APPROACH], next={OK: "milestones"}),
    PlanStep("milestones", "Write the milestones", [MILESTONES], next={OK: "review_design"}),
    *review("design", "the design of the plan", REVIEW_DESIGN, "plan-design", "detail"),
    PlanStep("detail", "Add code-level detail", [DETAIL], next={OK: "review_code"}),
    *review("code", "the detail of the plan", REVIEW_CODE, "plan-code", "documents"),
    PlanStep("documents", "Plan the documentation", [DOCUMENTS], next={OK: "review_docs"}),
    *review("docs", "the documentation in the plan", REVIEW_DOCUMENTS, "plan-docs", "hand_over"),
    StepDef("hand_over", "Hand the plan over", [HAND_OVER], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory(
        "planner",
        {
            CONTEXT: json.dumps(EMPTY_CONTEXT, indent=2) + "\n",
            PLAN: json.dumps(EMPTY_PLAN, indent=2) + "\n",
        },
    ),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
