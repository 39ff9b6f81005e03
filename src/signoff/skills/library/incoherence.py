"""Finds places where documents, code and configuration contradict each other, and settles them."""

from __future__ import annotations

from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.skills.coverage import COVERAGE_SCALE, CoverageLevel, repeat_until_covered
from signoff.skills.parts import NOTES_IN_REPLY, TASK, Iteration
from signoff.skills.state import STATE_DIR, state_directory

DESCRIPTION = """\
Find where documents, code, configuration and tests contradict each other, and settle it with
the user. Use it when it is open which side is right. Do not use it when the code is right
(doc-sync)."""

SKELETON = """\
# Contradictions

## Sources
(path, what it is meant to settle, current or historical)

## Facts
(topic, fact, each statement with its place)

## Contradictions
(K1, K2, ...: the quotes with places, what happens now, options, places to edit, status)

## Not a contradiction
(what looked like one, and why it is none)

## Decisions
(id, decision, who decided, why)
"""

SOURCES = """\
The sources are those of the parameter `task` if there is one, else what the user asked for.
`contradictions.md` in the state directory holds the notes; later steps and another agent rely
on it alone.

Do:
1. List everything that states how the system is or should be: documents, code, configuration
   for each environment, schemas, tests, samples, prompts, help texts, CI files, comments that
   give rules.
2. For each: what it is meant to settle, who changes it, and whether it is current, a plan, or a
   record of the past.
3. Choose the topics on which at least two sources speak: names and terms, defaults, limits and
   times, formats and schemas, order of steps, responsibilities, permissions, guarantees
   ("always", "never"), error handling, versions, environments.
4. Order the topics by the harm that a wrong belief does.
5. Note the output of `git status`: what is changed already is not yours.

Done when each source is listed, each topic names at least two sources, and no source is left
without a topic or the remark "speaks alone".

Do not decide yet which source is right, and do not rank them by age or by kind: code is not
right because it runs, a specification is not right because it is called one.

Write into `contradictions.md`: "Sources", and the topics in order under "Facts"."""

COLLECT = """\
Read `contradictions.md` in the state directory. In each round, take the next topics that have
no statements yet and collect what the sources say.

Do, for each topic:
1. Split it into single facts: "timeout of a request", not "timeouts".
2. For each fact, search all sources by name, by synonyms and by value ("30 s", "30000", "half a
   minute"). Note the searches.
3. Quote each statement with file and line. For code and configuration, quote the line that
   takes effect, after defaults, overrides and environment are applied.
4. Include statements that a source makes about itself in two places, what tests and samples
   take for granted, and what a rule implies for a case that another source shows.
5. Note for each statement what it applies to: version, environment, component, condition.

Done when each fact of the topic has all its statements, and a source that should speak about it
and does not is noted as silent.

Do not paraphrase: a contradiction is often one word. Do not leave out statements that agree;
the edit needs every place.

Write into `contradictions.md`: the facts with their statements."""

COMPARE = """\
Read "Facts" in `contradictions.md` in the state directory and compare the statements of each
fact.

Do:
1. Write a contradiction (K1, K2, ...) where two statements cannot both be true, or both be
   followed, for the same version, environment and case. Quote both with their places.
2. For each, describe a person or a program that believes one of them, what it does, and what
   goes wrong. Without that, it is not worth a decision.
3. Put what only looks like one under "Not a contradiction", with the reason: another scope,
   another version, a deliberate override, a record of the past, a summary that is less exact
   but not wrong.
4. Look for contradictions among three statements of which each pair agrees: A needs B, B
   excludes C, a sample uses A and C.
5. Look for words that are used with two meanings, and things that have two names.

Done when every fact with more than one statement was compared and ended in one of the two
lists.

Do not count gaps (a source says nothing) or differences in wording as contradictions.

Write into `contradictions.md`: "Contradictions" and "Not a contradiction"."""

CONFIRM = """\
Read "Contradictions" in `contradictions.md` in the state directory. Each will cost the user a
decision, so check each before it is asked.

Do, for each:
1. Open both places again and read ten lines around each. Conditions are often stated just
   above.
2. Find out what happens now: run it, or trace the code and the effective configuration. Quote
   the evidence.
3. Find out how it came about: the commits that wrote each side (`git blame`, `git log -S`), and
   whether one of them meant to replace the other.
4. Move it to "Not a contradiction" if it dissolves, with the reason.
5. Merge contradictions that one decision would settle.

Done when each remaining one has two quotes, what happens now with evidence, and its history or
"history unknown".

Do not settle any of them here, even if the history seems clear.

Write into `contradictions.md`: evidence and history for each contradiction."""

OPTIONS = """\
Read "Contradictions" in `contradictions.md` in the state directory and prepare each for a
decision.

Do, for each:
1. Write two or three options as decisions about the fact: "requests time out after 30 s", not
   "fix the document". "Leave both, they differ on purpose" may be one of them.
2. For each option: the places to edit, who is affected, what it costs and what it breaks.
3. Recommend one and give the reason in one sentence. If the evidence does not favor any, say
   so.
4. Mark those that need no decision: a typo, a broken link, an old name after a rename that a
   commit states, a value that a test enforces while only a comment differs. They have only one
   option, and the report lists them so that the user can object.
5. Put them in order: first those whose answer decides others, then by harm. Where many share
   one pattern ("which side is right for all settings in this file?"), make one question of
   them.

Done when a person who has not seen the sources could choose by reading the entry, and at most
15 need a decision; put the least harmful of the rest under "postponed".

Do not write an option that no one could want. Do not put your recommendation into the wording
of the question.

Write into `contradictions.md`: options, places, recommendation, order and marks."""

SETTLE = """\
You settle contradictions with the user. `contradictions.md` in the state directory has them in
order, with quotes, evidence and options. You see nothing else, and you decide nothing yourself.

Do:
1. Read "Contradictions" and "Decisions". Add the answers that you were given to "Decisions":
   the id, the decision in the user's words, "user", and the reason if there is one.
2. Drop questions that these answers settled or made meaningless. If an answer contradicts an
   earlier decision, ask about that first.
3. If contradictions that need a decision are open, ask about the next ones: at most three at a
   time, and none whose answer depends on another of them. The header of a question is the id.
   Its text states the fact in one sentence, what the two places say, and what happens now. The
   options are those of the notes; the description of each says what it changes and what it
   costs. Name your recommendation in the description of its option.
4. When none is open, answer with the list of decisions: id, decision, places to edit.

If the user does not want to decide one, record it as "postponed" and continue.

Do not edit anything but "Decisions". Do not ask what the sources answer, and do not ask again
what was decided."""

APPLY = """\
Read "Decisions" in `contradictions.md` in the state directory, and make the sources say what
was decided.

Do:
1. For each decision, edit every place that the option lists, then search again for the old
   statement by name, synonym and value, and edit what the search finds.
2. Where the decision changes what a program does, change code and tests together, and run the
   tests before and after. If the change is larger than the option said, stop with this
   decision, leave its places as they are and mark it "larger than expected".
3. Where several places must agree from now on, let one place state the fact and the others
   refer to it, if that is possible without new machinery.
4. Make the edits that need no decision.

Done when the search for each old statement finds nothing outside records of the past, and the
tests pass.

Do not touch what was postponed, do not settle anything that has no decision, and do not improve
text or code on the way.

Write into `contradictions.md`: the edited places for each decision."""

VERIFY = """\
Read `contradictions.md` in the state directory. Edits made in many places are where new
contradictions come from.

Do:
1. For each decision, collect all statements of the fact again, from all sources and not only
   from the edited ones. They must agree with the decision in its own words and with each other.
2. Compare the decisions with each other: can all of them hold at once?
3. Run the tests, the builds of documents and the checks of configuration for what was edited.
4. Read the diff: each edit must belong to a decision or to an entry that needed none. Undo what
   you changed beyond that, and leave alone what was changed before you started.
5. Correct what fails, and check the correction in the same way.

Done when each decided fact has one meaning everywhere, with the searches that show it.

Do not report new contradictions as settled; add them to the notes as open.

Write into `contradictions.md`: the result for each decision."""

REPORT = """\
Read `contradictions.md` in the state directory and write the report for the user.

Do:
1. List what was decided, for each: the fact, the decision, the edited places.
2. List what was corrected without asking, with the old and the new words, so that the user can
   object.
3. List what is open: postponed, larger than expected, found late. For each, what goes wrong as
   long as it stays open.
4. Say which sources and topics were covered and which were not.
5. For the two or three facts that would do most harm if they drifted apart again, name a check
   that would catch it (a test, a generated file, a single source), in one sentence each.

Done when the user can see from the report alone what changed in meaning and what did not.

Do not list what turned out to be no contradiction, except where the user asked about it."""


def collect(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> tuple[Outcome, dict[str, Any]]:
    """Repeats the collection until every topic has its statements."""
    return repeat_until_covered(ctx, coverage, iteration)


OK = Outcome.OK

WORKFLOW = Workflow(
    "incoherence",
    StepDef(
        "sources", "List the sources and topics", [SOURCES, NOTES_IN_REPLY], next={OK: "collect"}
    ),
    StepDef(
        "collect",
        "Collect what the sources say",
        [COLLECT, COVERAGE_SCALE, NOTES_IN_REPLY],
        collect,
        {OK: "compare", Outcome.ITERATE: "collect"},
    ),
    StepDef("compare", "Find the contradictions", [COMPARE, NOTES_IN_REPLY], next={OK: "confirm"}),
    StepDef(
        "confirm", "Confirm each contradiction", [CONFIRM, NOTES_IN_REPLY], next={OK: "options"}
    ),
    StepDef(
        "options",
        "Prepare the decisions",
        [OPTIONS, NOTES_IN_REPLY],
        next={OK: "settle"},
        edits=True,
    ),
    StepDef(
        "settle",
        "Settle them with the user",
        [SETTLE],
        Dispatch(AgentRole.GENERAL_PURPOSE, free_form=True, supports_questions=True),
        {OK: "apply"},
        edits=True,
    ),
    StepDef(
        "apply", "Make the sources agree", [APPLY, NOTES_IN_REPLY], next={OK: "verify"}, edits=True
    ),
    StepDef("verify", "Check that they agree", [VERIFY, NOTES_IN_REPLY], next={OK: "report"}),
    StepDef("report", "Report", [REPORT, NOTES_IN_REPLY], next={OK: None}),
    description=DESCRIPTION,
    inputs=[TASK, STATE_DIR],
    prepare=state_directory("incoherence", {"contradictions.md": SKELETON}),
)

if __name__ == "__main__":
    from signoff.skills.module_main import main

    main(WORKFLOW)
