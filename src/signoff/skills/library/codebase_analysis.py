"""Builds an understanding of a code base that others can rely on: measured, traced and checked."""

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
Understand an unfamiliar code base, with references for every statement. Use it before planning
work in it, or for onboarding. Do not use it to look up one function or to find defects
(code-review)."""

NOTES = "notes.md"

SKELETON = """\
# Analysis of a code base

## Questions

## Inventory

## Stated design

## Areas

## Paths

## Open questions

## Corrections

## Report
"""

WHOLE = "the whole code base"

SCOPE = f"""\
The task is the parameter `task` if there is one, else what the user asked for. `{NOTES}` in the
state directory holds all notes; later steps and sub-agents rely on it and on nothing else.

Do:
1. Write the questions that the analysis must answer, Q1, Q2, ..., at most seven, each so that one
   could tell a right answer from a wrong one: "Which code runs between a login request and its
   session row?", not "How does authentication work?".
2. If the task is only "understand this", use these: What does it do, for whom? What starts it,
   and what does it talk to? What are its parts, and which depend on which? Where is state kept,
   and who may change it? How is it built, tested and released? What would a newcomer break first?
3. Write who will use the answers and for what, and what is out of scope.
4. Pin the version: repository and commit, and whether the working copy has changes.

Done when each question has a form that its answer will take: a list, a diagram, a path, a number.

Do not read code yet. Ask the user only if two readings of the task would lead to other questions.

Write into `{NOTES}`: "Questions", with the reader, the scope and the commit."""

INVENTORY = f"""\
`{NOTES}` in the state directory has the questions and the scope. This step measures before anyone
forms an opinion.

Do:
1. Count files and lines by language and top-level folder, from the list of tracked files. Mark
   what is generated, vendored, copied or data, and leave it out from here on.
2. List the entry points: programs, services, jobs, handlers, public API, plug-in hooks, tests.
   Take them from build files, manifests and deployment files, not from names of folders.
3. List external systems: databases, queues, services, files, programs, environment variables; the
   place in the code where each is opened.
4. List direct dependencies and what each is used for, by searching for its imports.
5. From the history: the twenty most often changed files of the last year, files that change
   together, folders that no one has touched for two years.
6. List the twenty largest files and the files that most other files import.

Done when the counts add up to the total, and each entry point and external system has a file and
line.

Do not estimate a number that a command can count. Write the command next to the number.

Write into `{NOTES}`: "Inventory"."""

ORIENT = f"""\
`{NOTES}` in the state directory has questions and an inventory.

Do:
1. Read what the project says about itself: overview, architecture pages, decision records, guides
   for contributors, configuration with comments. Write its claims about structure as S1, S2, ...
   with their place.
2. Check each claim against the inventory and the code it names: true, outdated, false, or not
   checkable. Documents describe what was planned; only the code describes what is.
3. Build the project and run its tests as the documents say. Record the commands, the time, what
   fails, and what had to be done differently.
4. Run the smallest real use of the program, with a debugger, trace or log, and list the functions
   it passes through.
5. Collect the project's own words: ten to thirty terms with the class, table or module that each
   stands for. Note words with two meanings.

Done when every claim has a mark, and the build and the tests have a result.

Do not repair the build or the documents; note what is wrong. If the build needs secrets or
systems that you lack, write that down and continue without it.

Write into `{NOTES}`: "Stated design" (claims with marks, commands with results, terms)."""

DIVIDE = f"""\
`{NOTES}` in the state directory has questions, inventory and the stated design.

Do:
1. Divide the code in scope into three to nine areas that can be read independently, by what they
   are responsible for. Use imports and co-changes from the inventory, not only folders.
2. Give each a short name, its paths, its size in lines, and the questions (Q1, ...) it bears on.
   No area has more than about 10,000 lines; leave code that bears on no question to a last area
   that is only skimmed.
3. Write for each the two or three things that a reader of it has to find out.
4. Write which areas you expect to depend on which. This is a guess to be checked.

Done when every file in scope belongs to exactly one area, or to the list of what is not read,
with a reason.

Do not make an area for "utilities" or "other": assign each such file to its main user.

Write into `{NOTES}`: "Areas", each with name, paths, size, questions, what to find out; and the
expected dependencies.

Then report `areas`: their names, separated by commas, without a comma inside a name. Without it
the step is repeated; once you have reported it, continue with the next step."""

EXPLORE = f"""\
One sub-agent for each area reads it and reports what is there. Your area is the one you were
given by name; without one, take each area in the list, one after the other. `{NOTES}` in the
state directory has the questions, the inventory and the list of areas with what to find out about
each. Do not change any file of the project.

Do:
1. Read the public surface of the area: what others call, import, configure or read.
2. Read the implementation of the largest, the most imported and the most often changed files in
   full, and the tests of the area. Skim the rest.
3. For each thing to find out, answer with file and line.
4. Note the state the area keeps or changes, its concurrency, its error handling, and the rules
   that callers must follow and that nothing enforces.
5. Note which other areas it uses and which use it, from imports and calls, not from names.
6. Note what surprised you: dead code, duplicates, comments that contradict the code, special
   cases.

Done when each thing to find out has an answer with a reference, or "not found" with where you
looked.

Do not describe code that you have not opened, and do not repeat file names as explanations ("the
parser parses"). Do not suggest improvements.

Answer in at most 60 lines: purpose in two sentences; surface; answers; state and rules;
dependencies in and out; surprises; what you did not read."""

TRACE = f"""\
`{NOTES}` in the state directory has the areas; the reports on them are the results of the step
before. If you have them only in your conversation, copy their answers into `{NOTES}` first.

Do:
1. Choose two to four real paths that together touch most areas and bear on the questions: a
   request, a job, a write and the read that follows, a failure.
2. Follow each from the entry point to its last effect by reading each function on the way. Write
   every hop as "file:line, what happens, what is passed on".
3. Confirm at least one path by running it: a test with a trace, a log, a debugger.
4. Note on each path: where input is checked, where state changes, where it can fail and what
   happens then, where it crosses a process or a thread.
5. Where a path contradicts a report or the stated design, open the code and decide which is
   right. Write the mistake under "Corrections".
6. Compare the dependencies you saw with those you expected.

Done when each path has no gap: between two hops there is a call, a message or a stored row that
you can point at.

Do not bridge a gap with "then it is processed". Dynamic dispatch, configuration and generated
code are where the path usually goes somewhere else than it seems.

Write into `{NOTES}`: "Paths" and "Corrections"; "Open questions" for what you could not follow."""

DEEPEN = f"""\
`{NOTES}` in the state directory has the questions, areas, paths and open questions.

Do, in each round:
1. Draft the answer to each question from the notes. Each sentence needs a reference to a file and
   line, a command or a path; list the sentences that have none.
2. Choose what to settle in this round: a sentence without a reference, an open question, or two
   notes that contradict each other. Take first what would change an answer.
3. Settle it by reading the code in full or by running it, and write the reference down.
4. For each answer, look for the second way: another caller, another configuration, an old code
   path behind a flag, a script that bypasses the API.

Done when every question has an answer whose sentences have references, and the second way was
looked for.

Do not polish the wording while a reference is missing. Do not answer from experience with similar
projects.

Write into `{NOTES}`: the draft answers under "Questions", what is settled and what is open."""

VERIFY = f"""\
`{NOTES}` in the state directory has draft answers with references. Assume that one in ten
references is wrong, and find out which.

Do:
1. Take ten statements of the answers, or all if there are fewer: those that others build on, and
   some at random. Open each reference and check that it says what the answer says.
2. Make three predictions from the map that you have not checked, and check them: "if this
   function raises, that test fails", "no code outside this area writes this table", "with this
   setting off, this path is taken". Use a scratch copy for changes.
3. If a statement or prediction fails, find out why you believed it, correct it, and check what
   else came from the same source.
4. Check what is not there: for each "never", "only" and "all" in the answers, run a search that
   would find an exception.

Done when ten references and three predictions were checked after the last correction.

Do not count a statement as checked because it still seems right. Leave no change in the project:
compare its status with that at the start.

Write into `{NOTES}`: what was checked, what failed and what was corrected, under "Corrections"."""

REPORT = f"""\
`{NOTES}` in the state directory has checked answers, areas, paths and corrections.

Do:
1. Begin with the answers to the questions, in their order, each in a few sentences with
   references.
2. Then the map: areas with purpose and paths, their dependencies as a diagram or a table, entry
   points, external systems, where state is kept.
3. Then the traced paths, the rules that nothing enforces, the terms, how to build and test.
4. Then what a newcomer should know before changing anything, and the places where documents and
   code disagree.
5. End with what was not read, what stayed open, how confident you are in each answer, and the
   commit that all of it refers to. If confidence stayed below high, say so next to the answer.

Done when a newcomer could find the place for a given change with this text alone, and every
reference in it resolves at the commit it names.

Do not include recommendations unless a question asks for them. Do not list all files.

Write into `{NOTES}`: "Report", unless the user wants it elsewhere. Tell the user where it is, and
the three most important answers."""

Areas = Annotated[list[str] | None, Arg("names of the areas to read, separated by commas")]


def divide(
    ctx: StepContext, areas: Areas = None, iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Keeps the areas for the sub-agents; without any, one reads everything."""
    outcome, _ = repeat_until(bool(areas), ctx, iteration)
    return outcome, {"areas": areas or [WHOLE]}


def deepen(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the reading until every answer is well supported."""
    return repeat_until_confident(ctx, confidence, iteration)


OK, ITERATE = Outcome.OK, Outcome.ITERATE

WORKFLOW = Workflow(
    "codebase-analysis",
    StepDef("scope", "Write the questions", [SCOPE, NOTES_IN_REPLY], next={OK: "inventory"}),
    StepDef("inventory", "Measure the code base", [INVENTORY, NOTES_IN_REPLY], next={OK: "orient"}),
    StepDef("orient", "Check the stated design", [ORIENT, NOTES_IN_REPLY], next={OK: "divide"}),
    StepDef(
        "divide",
        "Divide it into areas",
        [DIVIDE, NOTES_IN_REPLY],
        divide,
        {OK: "explore", ITERATE: "divide"},
        edits=True,
    ),
    StepDef(
        "explore",
        "Read an area",
        [EXPLORE],
        Dispatch(AgentRole.EXPLORE, free_form=True, for_each="areas"),
        {OK: "trace"},
    ),
    StepDef("trace", "Trace real paths", [TRACE, NOTES_IN_REPLY], next={OK: "deepen"}),
    StepDef(
        "deepen",
        "Answer the questions",
        [DEEPEN, NOTES_IN_REPLY, CONFIDENCE_SCALE],
        deepen,
        {OK: "verify", ITERATE: "deepen"},
    ),
    StepDef("verify", "Try to refute the map", [VERIFY, NOTES_IN_REPLY], next={OK: "report"}),
    StepDef("report", "Write the report", [REPORT, NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("codebase-analysis", {NOTES: SKELETON}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
