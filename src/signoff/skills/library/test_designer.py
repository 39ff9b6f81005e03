"""Designs and writes tests for behavior, and shows that each of them can fail."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.coverage import COVERAGE_SCALE, CoverageLevel, repeat_until_covered
from signoff.skills.parts import NOTES_IN_REPLY, TASK, Iteration
from signoff.skills.state import STATE_DIR, state_directory

DESCRIPTION = """\
Design and write tests for what code promises, and show that each can fail. Use it for behavior
that no test guards. Do not use it for a coverage figure, load tests, or code that is thrown
away."""

SKELETON = """\
# Tests

## Subject
(what is tested, its interface, how tests are run here, their result before)

## Behaviors
(B1, B2, ...: given, when, then; source)

## Questions
(what no source answers)

## Cases
(T1, T2, ...: behavior, input, expected result and where it comes from, level, test name)

## Defects
(tests that fail because the code is wrong)
"""

SUBJECT = """\
The code is that of the parameter `task` if there is one, else what the user asked for.
`behaviors.md` in the state directory holds the notes; later steps and another agent rely on it
alone.

Do:
1. Name the subject: the functions, commands or endpoints that its users call. Anything that
   only the code itself calls is not the subject, it is how the subject works today.
2. List who uses it and what they need from it. Search for callers.
3. List the sources that say what it should do: specification, issue, documents, help text,
   types, existing tests, the user.
4. Find out how tests are written and run here: command, folders, naming, fixtures, doubles that
   exist, markers. Run the existing tests of the subject and note the result and the time.
5. Note what makes it hard to test: clock, randomness, network, files, global state, processes.

Done when the notes name the interface, the sources and the command, with the result of running
it.

Do not read the implementation for what it does. Do not write tests yet.

Write into `behaviors.md`: "Subject"."""

BEHAVIORS = """\
Read "Subject" in `behaviors.md` in the state directory. In each round, list what the subject
promises, one source or one part of the interface at a time.

Do:
1. Write each promise as a behavior with an id (B1, B2, ...): given a situation, when its user
   does something, then this can be observed. Quote the source.
2. Go through this list for each part of the interface: ordinary use; limits of each input;
   missing, malformed and hostile input; each error and what remains after it; the same call
   twice; calls in another order; two at once; interruption in the middle; old data;
   permissions; what must not happen.
3. Where the sources are silent or contradict each other, write a question with the possible
   answers. Ask the user about those that matter; do not look up in the code which answer it
   happens to give.
4. Only when the sources are used up, read the implementation once, for branches that no
   behavior explains. Each is a question, or dead code to report. It is not a behavior merely
   because it is there.

Done when each sentence of the sources has its behaviors, each part of the interface went
through the list, and each branch is explained or is a question.

Do not write behaviors in terms of internals: "calls save() once" is none, "is still there after
a restart" is one.

Write into `behaviors.md`: "Behaviors" and "Questions"."""

CASES = """\
Read "Behaviors" in `behaviors.md` in the state directory and choose the cases that show each of
them.

Do:
1. For each behavior, divide its inputs into groups that the specification treats alike. Take
   one value from each group and the values on both sides of each limit.
2. Where several inputs interact, take the combinations whose result the specification gives
   separately, and those of two rules that meet. Do not multiply out the rest.
3. For behavior with a history, write the shortest sequence of calls that shows it.
4. Where a rule holds for all inputs (reading back what was written, the same result in any
   order, never below zero), write it as a property and test it with generated inputs if the
   project has a tool for that.
5. Write the expected result of each case from the specification, by hand or by a second method.
   Note where it comes from. A result obtained by running the code proves that the code does
   what it does.
6. Strike out each case that can only fail together with another one.

Done when each behavior has a case that fails if the behavior is missing, and each case has a
reason to fail that no other has.

Do not aim at lines or branches, and do not leave out a case because it will be laborious.

Write into `behaviors.md`: "Cases" with behavior, input, expected result and its origin."""

LEVELS = """\
Read `behaviors.md` in the state directory and decide how each case is tested.

Do, for each case:
1. Choose the lowest level at which the user of the behavior could observe it: a function for a
   rule, the real database for a query, the command line for an exit code.
2. Name what is observed: a return value, an error, a file, a row, a message, an output. If only
   a call to an internal function could be observed, the level is too low.
3. Use the real thing where it runs in a test. Replace only what is outside your control or
   costs something: network, payment, clock, randomness. Prefer doubles that the project has; a
   double must be able to fail like the original.
4. Control time, order and chance from the test. Never wait for a duration; wait for an event.
5. Give it a name that is a sentence about the behavior: "an expired token is refused".
6. If the code offers no way to observe or control something, note the smallest change that
   would. It needs the user's consent, unless changing the code is part of the task.

Done when each case has a level, an observation, its doubles with a reason, and a name.

Do not replace the subject or a part of it by a double, and do not plan a test that repeats the
computation of the code.

Write into `behaviors.md`: level, observation and name for each case."""

WRITE = """\
Read "Subject" and "Cases" in `behaviors.md` in the state directory, and write the tests.

Do:
1. Follow the project's conventions for folders, fixtures and style. Reuse its helpers.
2. One behavior for each test: arrange, act once, check. Show only the data that matters for the
   result; hide the rest in a builder with harmless defaults.
3. Write expected values as literals from the notes. No loops, conditions or computations that
   could be wrong in the same way as the code.
4. Check the whole observable result, and for errors the kind and what the user needs to act,
   not the full wording. Check that nothing else happened where the behavior says so.
5. Run each test alone. For a bug fix, run it on the code without the fix first: it must fail,
   and for the reason you expect.
6. If a test fails on the present code, read the specification again. If it confirms the test,
   list it under "Defects" and mark the test in the project's way as a known failure.

Done when each case has a test that passes or is a listed defect, and the formatter, the linter
and the type checker of the project report nothing.

Do not adapt an expected result to what the code returns. Do not change the code under test,
weaken an existing test, or catch an error to make a test pass.

Write into `behaviors.md`: the test of each case, and "Defects"."""

STABLE = """\
Read `behaviors.md` in the state directory. A test that fails without a defect is soon ignored,
and the others with it.

Do:
1. Run the new tests 20 times, or as often as ten minutes allow, in random order and in parallel
   if the project's runner can do it. Run each once by itself.
2. Run the whole suite of the package once with them and once without: they must not change the
   result of other tests, and must leave no files, processes, settings or environment behind.
3. Look through them for what depends on the machine: time zone, locale, today's date, free
   ports, absolute paths, speed, network, order of sets and directory listings.
4. Note the time they take. Find out why any is much slower than its neighbors.
5. Correct what you find at its cause.

Done when all runs gave the same result and the search found nothing that depends on the
machine.

Do not add retries, sleeps or longer timeouts.

Write into `behaviors.md`: the commands and results."""

BREAK = """\
You find out whether tests notice when the code is wrong. `behaviors.md` in the state directory
lists the behaviors, the cases and the command that runs the tests. You did not write them.

Do:
1. Work on a copy of the project (a worktree or a copied folder), never on the original.
2. For each behavior, break the code so that this behavior is lost and the code still runs:
   invert a condition, shift a limit by one, drop a call, swallow an error, return a constant,
   forget to clean up, swap two steps. One break at a time. Run the tests, note which fail, undo
   the break.
3. For each break that no test notices, check whether a user could notice it. If not, it does
   not count.
4. Read the tests for checks that cannot fail: no assertion on some path, a comparison of
   something with itself, a double that answers the question, an expected value computed by the
   code under test.
5. Change the implementation without changing its behavior (rename something internal, reorder
   independent lines). Tests that fail now test the implementation.

The verdict is "pass" if each break that a user could notice made a test of that behavior fail,
and 4 and 5 found nothing. Otherwise it is "fail", with one line in the notes for each problem:
the behavior, the break as a diff of one or two lines, the test that should have noticed.

If you cannot run the tests, the verdict is "fail" with that reason. Do not write tests, and
remove your copy."""

STRENGTHEN = """\
Tests missed a defect, or failed where there was none; the notes of the verdict list each case.
`behaviors.md` in the state directory has the behaviors and cases.

Do, for each of these notes:
1. Make the break yourself in a copy, and see it go unnoticed.
2. Find out why: a missing case, a check that looks at too little, a double that hides it, a
   behavior that was never listed. Correct that, in the notes and in the tests.
3. Make the break again and see the right test fail with a message that names the behavior. Undo
   it.
4. Replace a test of the implementation by one of the behavior behind it, or delete it if
   another test shows that behavior.

Done when each break is noticed by a test of its behavior, and the tests pass on the intact
code.

Do not write a test that knows the particular break. Do not leave a break in the code: look at
the diff.

Write into `behaviors.md`: the changed cases and tests."""

REPORT = """\
Read `behaviors.md` in the state directory and write the report for the user.

Do:
1. List the defects that the tests found, first: behavior, test, what the code does instead.
2. List the questions that no source answers, with what the tests take for granted until then.
3. Give a table of behaviors with their tests, so that a gap can be seen.
4. Say how it was shown that the tests can fail: how many breaks were made, how many were
   noticed.
5. Name what is not tested and why, changes to the code that would make it testable, the command
   that runs the tests, and the time they take.

Done when a reader knows which promises are protected and which are not.

Do not report a coverage figure as a result, and do not describe the tests one by one."""


def behaviors(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the listing until every source is used up."""
    return repeat_until_covered(ctx, coverage, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "test-designer",
    StepDef("subject", "Name what is tested", [SUBJECT, NOTES_IN_REPLY], next={OK: "behaviors"}),
    StepDef(
        "behaviors",
        "List what it promises",
        [BEHAVIORS, COVERAGE_SCALE, NOTES_IN_REPLY],
        behaviors,
        {OK: "cases", Outcome.ITERATE: "behaviors"},
    ),
    StepDef("cases", "Choose the cases", [CASES, NOTES_IN_REPLY], next={OK: "levels"}),
    StepDef(
        "levels", "Decide how each case is tested", [LEVELS, NOTES_IN_REPLY], next={OK: "write"}
    ),
    StepDef("write", "Write the tests", [WRITE, NOTES_IN_REPLY], next={OK: "stable"}, edits=True),
    StepDef("stable", "Make sure they are stable", [STABLE, NOTES_IN_REPLY], next={OK: "break"}),
    StepDef(
        "break",
        "Have the code broken",
        [BREAK],
        Dispatch(AgentRole.QUALITY_REVIEWER),
        {OK: "report", Outcome.FAIL: "strengthen"},
        edits=True,
    ),
    StepDef(
        "strengthen",
        "Close the gaps",
        [STRENGTHEN, NOTES_IN_REPLY],
        next={OK: Edge("break", bound=3, on_limit="ask")},
        edits=True,
    ),
    StepDef("report", "Report", [REPORT, NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("test-designer", {"behaviors.md": SKELETON}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
