"""Brings documents in line with what the code does, statement by statement."""

from __future__ import annotations

from typing import Annotated, Any

from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.skills.coverage import COVERAGE_SCALE, CoverageLevel, repeat_until_covered
from signoff.skills.parts import NOTES_IN_REPLY, TASK, Iteration
from signoff.skills.state import STATE_DIR, state_directory

DESCRIPTION = """\
Correct documents by what the code does, statement by statement. Use it after a change or before
a release. Do not use it to write new documents, or when it is open which side is right
(incoherence)."""

SKELETON = """\
# Documents and code

## Documents
(path, readers, what it describes, generated or not)

## Claims
(D1, D2, ...: place, statement, verdict, evidence)

## Not documented

## Decisions
(claim, which side is wrong, why)

## Edits
"""

SCOPE = """\
The documents and the code are those of the parameter `task` if there is one, else what the user
asked for. `claims.md` in the state directory holds the notes; later steps rely on it.

Do:
1. List the documents that describe this code. Look beyond the obvious files: README, guides,
   reference pages, help texts of commands, published docstrings, sample configuration, comments
   in sample files, schemas with descriptions, diagrams, templates, the text of error messages
   that name a remedy.
2. For each: its path, who reads it and for what, which code it describes, and whether it is
   generated. For a generated one, find the source and the command that writes it.
3. If the reason for this work is a change, take its diff and search all documents for every
   name, option, default and path in it, old and new.
4. If there is more than can be read completely, take what the task names and what the search
   found, and list the rest as not checked.
5. Leave out records of the past: released entries of a changelog, decision records, minutes,
   dated reports. They were right at the time and are not corrected.
6. Note the output of `git status`: what is changed already is not yours.

Done when each document has these facts or is in the list of what is left out, and the search
commands are in the notes.

Do not correct anything yet, not even an obvious mistake: it may appear in five other places.

Write into `claims.md`: "Documents"."""

CLAIMS = """\
Read "Documents" in `claims.md` in the state directory. Take each document apart into statements
that can be true or false.

Do:
1. Read each document from its first to its last line. Write each claim with an id (D1, D2,
   ...), its place and the words as they are. Claims are:
   - commands, options, paths, names, types, signatures, links
   - numbers: defaults, limits, versions, ports, times
   - what happens: order of steps, results, exit codes, messages, side effects
   - promises: "always", "never", "only", "must", "supports", "is not stored"
   - examples: the input and the output shown
   - complete lists: "the following options" claims that there are no others
   - diagrams: each box and each arrow
2. Put claims about one fact together, with all places that state it.

Done when each paragraph, table row, example and diagram is represented by its claims, or marked
"no claim" (motivation, opinion, plans marked as such).

Do not judge while you collect, and do not leave out a claim because you believe that it holds.
Do not improve the words of a claim.

Write into `claims.md`: "Claims", without verdicts."""

CHECK = """\
Read "Claims" in `claims.md` in the state directory. In each round, check the next claims that
have no verdict.

Do, for each claim:
1. Check it against what the program does, in this order of preference: run it, read the code
   that runs, read a test that passes. Another document, a comment or a name proves nothing.
2. Run commands and examples exactly as printed, in a scratch directory, with the version that
   the document is about. Compare the whole output, not its first line.
3. For a promise, look for the counterexample: the one caller, option or error path that breaks
   it.
4. For a complete list, produce the real list from the code and compare both ways.
5. Write the verdict with its evidence (file and line, or command and output): "holds", "wrong"
   and what is true instead, "misleading" and what a reader would do wrong, or "not checkable"
   and why.

Done when each claim has a verdict with evidence.

Do not write "holds" because the claim sounds right or the document is recent. Do not run
commands that delete, publish, pay or reach production: read the code instead and say so.

Write into `claims.md`: the verdicts."""

MISSING = """\
Read `claims.md` in the state directory. So far you went from the documents to the code. Go the
other way now.

Do:
1. List what the code offers to the readers of these documents: commands, options, settings,
   environment variables, public functions, endpoints, file formats, exit codes, errors they
   will meet. Produce the list by a program or a search, not from memory.
2. Mark what no document mentions.
3. Keep an item only if a reader named under "Documents" needs it for something they want to do.
   Drop internals, and what is deliberately undocumented (hidden, experimental, deprecated).
4. For each item that you keep, name the document and the section in which its reader would
   look.

Done when each list was compared and each item that was kept has a place and a reader.

Do not plan new documents. If one is needed, that is a remark for the report.

Write into `claims.md`: "Not documented"."""

DECIDE = """\
Read `claims.md` in the state directory. A mismatch shows that two sides differ, not which one
is wrong.

Do, for each claim that is wrong or misleading:
1. Look for what was intended: tests, the issue and the commit that last changed either side
   (`git log -S`, `git blame`), and who may rely on the documented behavior.
2. Decide "document" if the code was changed on purpose or always worked this way and tests
   confirm it. Decide "code" if a test, an issue or a published promise says what the document
   says. Decide "open" if the evidence points both ways.
3. For "code" and "open", write what a user of each reading would experience. These go to the
   user; the document is not changed.
4. For "document" and for each item under "Not documented", write the edit: every place, and the
   new words.

Done when each mismatch has a decision with a reason, and each edit lists all its places.

Do not declare a bug to be the documented behavior by editing the document: that removes the
only record that it was meant otherwise. Do not change code.

The edits follow if `mode` is `fix`, as it is by default. With `check`, which only the user
chooses, the report follows.

Write into `claims.md`: "Decisions", with the planned edits."""

EDIT = """\
Read "Decisions" in `claims.md` in the state directory, and make the edits that are planned
there.

Do:
1. Make the smallest edit that makes the statement true, in every place that states it. Search
   again for the old words when you are done; translations and samples count.
2. Where one fact is stated in several places, keep it where readers look first and link to it
   from the others, if the project's documents do so already.
3. Delete what describes something that no longer exists. Do not turn it into a note about the
   past.
4. For generated documents, edit the source and run the generator.
5. Keep the document's terms, voice, heading levels and order. Describe how it is, without
   "now", "new" or "no longer".

Done when each planned edit was made or is marked with the reason why not, and the search for
each old statement finds nothing.

Do not rewrite paragraphs that are right, do not fix style, do not add claims that you did not
check, and do not touch code, tests or released changelog entries.

Write into `claims.md`: "Edits", one line for each file."""

RECHECK = """\
Read `claims.md` in the state directory, then the diff of the documents as if someone else had
written it.

Do:
1. Check each changed sentence against the code again, as in the first check. An edit is a new
   claim.
2. Run each changed example and command as printed.
3. Follow each changed link and anchor. Build the documents and run their tests, if there are
   any.
4. Read one section around each edit: does it still fit what comes before and after?
5. Look at the list of changed files: each must be listed under "Edits". Undo what you changed
   beyond that, and leave alone what was changed before you started.
6. Correct what fails, and check the correction in the same way.

Done when each changed line was checked, you can name the check, and none fails.

Do not use this step to polish wording or to add what was not planned.

Write into `claims.md`: the check made for each edit, and what it found."""

REPORT = """\
Read `claims.md` in the state directory and write the report for the user.

Do:
1. Begin with the numbers: documents, claims checked, claims that hold, wrong, misleading, not
   checkable.
2. List what the user has to decide: claims where the code may be wrong or both sides are
   possible, with the evidence for each reading.
3. List the corrections by document: old statement, new statement, evidence. If documents were
   only checked, list the corrections you propose instead.
4. List what was not checked and why, and what has no document but needs one.
5. If the same kind of claim went wrong several times, name the check that would catch it (a
   test that runs the examples, a generated list), in one sentence.

Done when the user can accept or reject each correction without opening the code.

Do not describe how you worked, and do not repeat claims that hold."""

Mode = Annotated[str, Arg("check only reports, fix also edits", choices=("check", "fix"))]


def check(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the check until every claim has a verdict."""
    return repeat_until_covered(ctx, coverage, iteration)


def decide(_ctx: StepContext, mode: Mode = "fix") -> tuple[Outcome, dict[str, Any]]:
    """Leads to the edits, or past them if documents are only checked."""
    return (Outcome.SKIP if mode == "check" else Outcome.OK), {}


OK = Outcome.OK

WORKFLOW = Workflow(
    "doc-sync",
    StepDef("scope", "List the documents", [SCOPE, NOTES_IN_REPLY], next={OK: "claims"}),
    StepDef("claims", "Collect what they claim", [CLAIMS, NOTES_IN_REPLY], next={OK: "check"}),
    StepDef(
        "check",
        "Check each claim against the code",
        [CHECK, COVERAGE_SCALE, NOTES_IN_REPLY],
        check,
        {OK: "missing", Outcome.ITERATE: "check"},
    ),
    StepDef(
        "missing", "Find what is not documented", [MISSING, NOTES_IN_REPLY], next={OK: "decide"}
    ),
    StepDef(
        "decide",
        "Decide which side is wrong",
        [DECIDE, NOTES_IN_REPLY],
        decide,
        {OK: "edit", Outcome.SKIP: "report"},
    ),
    StepDef(
        "edit", "Correct the documents", [EDIT, NOTES_IN_REPLY], next={OK: "recheck"}, edits=True
    ),
    StepDef("recheck", "Check the corrections", [RECHECK, NOTES_IN_REPLY], next={OK: "report"}),
    StepDef("report", "Report", [REPORT, NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("doc-sync", {"claims.md": SKELETON}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
