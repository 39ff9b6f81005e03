"""The state of a flow's run: what the next steps, the run directory and the reports read.

It is plain JSON, and its names are part of the run directory that users know. Below the view of it
are the updates that several kinds of step make: answers of humans, warnings that stopped nothing (a
critique that was sent back, a judge that was overruled), the numbers of each round, and the best
version so far: the one with the fewest and least severe findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from signoff.core.delta import Append
from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.review.pure.artifact import UNNAMED, ArtifactVersion, locate_finding
from signoff.review.pure.critique import Adjudication, Critique, CritiqueIssue, Verdict
from signoff.review.pure.findings import Ledger
from signoff.review.pure.lasting_decision import LastingDecision
from signoff.review.pure.prompt_text import Guidance

if TYPE_CHECKING:
    from signoff.review.flow.model import Scope
from collections.abc import Collection, Iterable

from signoff.core.context import StepContext
from signoff.core.one_line import one_line
from signoff.core.requests import Answer
from signoff.review.pure.finding import Finding, blocking_first, describe_equal, group_equal
from signoff.review.pure.findings import summarize_round

T = TypeVar("T")
MOST_GUIDANCE = 10
"""Answers of humans that prompts repeat, the latest ones."""

LONGEST_QUESTION = 2_000
"""Characters of a question that are repeated with its answer; it may list hundreds of findings."""

STATUS = "status.md"
"""The file next to the artifact that explains why it was not approved."""

NOT_CONVERGING = "not_converging"
"""The id of the question whether to continue a run that does not converge, and its trigger."""

PREPARED = (
    *("files", "base", "renamed", "deleted", "skipped", "unchecked"),
    *("intent", "trusted", "decisions", "rule_decisions"),
)
"""What is read before a run of files starts: parameters of the run, and then part of its state."""

FILE_WARNINGS = "file_warnings"
"""The parameter of a run with what is odd about its files."""

VERIFY = "verify"
"""The key under which an agent is asked to confirm a finding."""

UNREVIEWED = "nothing was reviewed: no critic read the artifact against any constraint"
"""The note on a verdict without critiques. It is stored, and recognized by this text."""


def blocking_severities(definition: Mapping[str, Any]) -> frozenset[Severity]:
    """Returns the severities that block in a run, from the definition that it was started with.

    Read from what is stored: compiling again would import from the project under review.
    """
    flow = (definition.get("source") or {}).get("flow") or {}
    names = (flow.get("adjudication") or {}).get("block_on")
    return frozenset(DEFAULT_BLOCK_ON if names is None else map(Severity, names))


class _Part(Generic[T]):
    """One key of the state, with the value that stands for an absent or empty one."""

    def __init__(self, empty: T) -> None:
        self.empty = empty

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, state: FlowState, _owner: type) -> T:
        """Returns the value of the key."""
        value: T = state.raw.get(self.name) or self.empty
        return value


@dataclass(frozen=True)
class FlowState:
    """A typed view of the state."""

    raw: Mapping[str, Any]

    @property
    def artifact(self) -> str:
        """The current text."""
        return str(self.raw.get("artifact", ""))

    @property
    def has_files(self) -> bool:
        """Whether the artifact is a set of files."""
        return "files" in self.raw

    @property
    def files(self) -> Mapping[str, str]:
        """The current texts by path; a single text has no name."""
        return self.raw["files"] if self.has_files else {UNNAMED: self.artifact}

    @property
    def current(self) -> Any:
        """The current text, or texts by path, as versions are stored."""
        return self.files if self.has_files else self.artifact

    base = _Part[Mapping[str, str]]({})
    """In a review of changes, the texts before them by the present path."""

    @property
    def rule_decisions(self) -> list[LastingDecision]:
        """The decisions that dismiss everything that a rule reports."""
        return [LastingDecision.from_json(each) for each in self.raw.get("rule_decisions", ())]

    @property
    def trusted(self) -> Mapping[str, str] | None:
        """The texts whose comments may dismiss findings; None if those of the files may."""
        return self.raw.get("trusted")

    intent = _Part[str]("")
    """What a change is meant to do, in the words of its author."""

    @cached_property
    def content(self) -> ArtifactVersion:
        """The current version, for looking up quotes."""
        return ArtifactVersion(self.files)

    @cached_property
    def version(self) -> str:
        """The digest that names the current version."""
        return self.content.version

    @property
    def adjudication(self) -> Adjudication | None:
        """The last verdict, while it is about this artifact."""
        verdict = self.raw.get("last_adjudication")
        return Adjudication.from_json(verdict) if verdict else None

    @property
    def passed(self) -> bool:
        """Whether this artifact passed review: the last verdict asks for no changes."""
        return bool((self.raw.get("last_adjudication") or {}).get("status") == Verdict.APPROVED)

    @property
    def reviewed(self) -> bool:
        """Whether the last judge had any critique."""
        verdict = self.raw.get("last_adjudication") or {}
        return UNREVIEWED not in verdict.get("notes", ())

    @cached_property
    def ledger(self) -> Ledger:
        """Every finding so far."""
        return Ledger.from_json(self.raw.get("findings") or {})

    rounds = _Part[list[Mapping[str, Any]]]([])
    """How many findings were open after each iteration's reviews."""

    @property
    def to_fix(self) -> list[list[str]]:
        """The findings that had to be fixed in each round, by any judge, in order."""
        # Several judges may decide in one round. A finding counts once in it, or two judges would
        # look like two rounds without progress.
        by_round: dict[int, dict[str, None]] = {}
        for each in self.raw.get("to_fix", ()):
            by_round.setdefault(each["round"], {}).update(dict.fromkeys(each["findings"]))
        return [list(findings) for findings in by_round.values()]

    best = _Part[Mapping[str, Any] | None](None)
    """The reviewed artifact with the fewest, least severe findings."""

    @property
    def guidance(self) -> list[Guidance]:
        """Answers of humans, each with its question, for prompts."""
        # Prompts repeat what humans decided, so that no agent undoes it. Old answers are dropped
        # first: a long run would otherwise repeat pages of them.
        answers = list(self.raw.get("human", ()))[-MOST_GUIDANCE:]
        return [Guidance(_shortened(each["question"]), str(each["answer"])) for each in answers]

    @property
    def warnings(self) -> list[Mapping[str, Any]]:
        """What did not stop the run but is worth knowing: round, step and text, in order."""
        return list(self.raw.get("remarks", ()))

    sources = _Part[Mapping[str, str]]({})
    """The material of the goal, under an empty name, and of constraints, by id."""

    @property
    def unchanged(self) -> bool:
        """Whether the last refinement left the artifact as it was."""
        return (self.raw.get("refined") or {}).get("changed") is False

    approved_by = _Part[str]("")
    """Who approved it at the sign-off that ended the run."""
    result_warnings = _Part[list[str]]([])
    """What a user should know before using the artifact."""
    written = _Part[Mapping[str, list[str]]]({})
    """The files of the project that were `written` at the end, or why not: `conflicts`."""

    def source(self, name: str = "") -> str:
        """Returns the material of a constraint, or of the goal."""
        return str(self.sources.get(name, ""))

    critiques_by_step = _Part[Mapping[str, list[dict[str, Any]]]]({})
    """The stored critiques of this artifact, by their step."""

    @property
    def critiques(self) -> list[Critique]:
        """The critiques of this artifact, by any step."""
        return [each for critiques in self.critiques_by_step.values() for each in read(critiques)]

    readings = _Part[Mapping[str, str]]({})
    """The version that each critic last read against each constraint, by `reading_key`."""
    not_repeated = _Part[Mapping[str, list[str]]]({})
    """The constraints whose earlier review still holds for this artifact, by their step."""

    @cached_property
    def answered(self) -> dict[str, Mapping[str, Any]]:
        """The answers of critics and judges in this run, by what they were asked."""
        return {each["request"]: each["answer"] for each in self.raw.get("answered", ())}

    @property
    def previously_reviewed(self) -> Any:
        """The version that was reviewed before the current one; empty for the first."""
        # A judge may have the same text read again. The version before it is then still the one
        # before, and not the text itself.
        read = self.raw.get("read")
        if read is None:
            return {} if self.has_files else ""
        return read["before"] if read["artifact"] == self.current else read["artifact"]

    @property
    def unadjudicated(self) -> list[Mapping[str, Any]]:
        """The stored critiques that no judge has seen."""
        return list(self.raw.get("unadjudicated_critiques", ()))


def get_critiques_for_scope(
    state: Mapping[str, Any], scope: Scope = "accumulated"
) -> list[Critique]:
    """Returns the critiques a judge gets.

    They are all that no judge has seen, those of the last critique step, or all of this artifact.
    """
    view = FlowState(state)
    if scope == "all":
        return view.critiques
    if scope == "previous":
        return read(view.critiques_by_step.get(str(state.get("last_critique_step")), ()))
    return read(view.unadjudicated)


def left_unadjudicated(state: Mapping[str, Any], scope: Scope) -> list[Mapping[str, Any]]:
    """Returns the critiques that are left for later judges after one has decided on its scope."""
    if scope == "accumulated":
        return []
    last = state.get("last_critique_step")
    unadjudicated = FlowState(state).unadjudicated
    return [each for each in unadjudicated if scope == "all" or each["step"] != last]


def after(state: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the state that an update leads to.

    The engine applies the update only when the step ends, but steps need the result before.
    """
    grown = {
        key: [*state.get(key, ()), *new] for key, new in update.items() if isinstance(new, Append)
    }
    return {**state, **update, **grown}


def joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns two updates as one; what both append is appended."""
    both = {
        key: Append([*first[key], *new])
        for key, new in second.items()
        if isinstance(new, Append) and isinstance(first.get(key), Append)
    }
    return {**first, **second, **both}


NOTHING_REVIEWED: Mapping[str, Any] = {
    "critiques_by_step": {},
    "unadjudicated_critiques": [],
    "last_critique_step": None,
}
"""The update that discards all critiques, when a new artifact has to be reviewed from scratch."""


def reading_key(constraint: str, agent: str, path: str = UNNAMED) -> str:
    """Returns the name of one critic's readings of a file against one constraint."""
    return f"{constraint}/{agent}/{path}" if path else f"{constraint}/{agent}"


def files_label(paths: Sequence[str]) -> str:
    """Returns a short name for some files."""
    return f"{paths[0]}+{len(paths) - 1}" if len(paths) > 1 else paths[0]


def stored(critique: Critique, step: str) -> dict[str, Any]:
    """Returns a critique as the state stores it: with its step."""
    return {**critique.to_json(), "step": step}


def critiques_in(result: Any) -> list[Mapping[str, Any]]:
    """Returns the critiques in the result of one item of a review, as they are stored."""
    found = result.get("critiques", [result]) if isinstance(result, Mapping) else []
    return [each for each in found if "reviewer" in each]


def read(critiques: Sequence[Mapping[str, Any]]) -> list[Critique]:
    """Reads critiques that the state stores."""
    return [Critique.from_json(each) for each in critiques]


def _shortened(question: str) -> str:
    cut = question[:LONGEST_QUESTION]
    return question if cut == question else f"{cut}…"


MOST_LISTED = 20
"""Findings that a question lists."""
LONGEST_FINDING = 4_000
"""Characters of a finding where people decide about it."""
LONGEST = 400
"""Characters of a warning; the problems of one critique can fill pages."""
_STILL_OPEN = "; still open:"


def keep_answer(
    ctx: StepContext, question_id: str, question: str, answer: Answer
) -> dict[str, Any]:
    """Returns the update that stores a human's answer for the prompts that follow."""
    choice = str(answer.value)
    # Agents read this text as the decision of a human, so it has the choice and the words.
    text = f"{choice}: {answer.text}" if answer.text and answer.text != choice else choice
    entry = {
        "question_id": question_id,
        "question": question,
        "answer": text,
        "by": answer.by,
        "round": ctx.iteration,
        "step": ctx.step_id,
    }
    return {"human": Append([entry])}


def report_warnings(ctx: StepContext, texts: Iterable[str]) -> dict[str, Any]:
    """Shows warnings while the run is under way; returns the update that stores them."""
    found = [shortened(text) for text in texts]
    for text in found:
        ctx.progress(text)
    entries = [{"round": ctx.iteration, "step": ctx.step_id, "text": text} for text in found]
    return {"remarks": Append(entries)} if entries else {}


def critique_warnings(critiques: Sequence[Critique]) -> list[str]:
    """Returns the engine's notes about critiques, each with its constraint and reviewer."""
    return [f"{c.constraint_id} by {c.reviewer}: {note}" for c in critiques for note in c.notes]


def at_limit_reason(why: str, state: FlowState, block_on: Collection[Severity]) -> str:
    """Returns why a run needs a decision at its limit, with the findings that are still open."""
    groups = group_equal(state.ledger.open(block_on))
    shown = [each for group in groups[:MOST_LISTED] for each in group]
    listed = [f"- {each}" for each in finding_lines(state.content, shown)]
    left = sum(map(len, groups[MOST_LISTED:]))
    listed += [f"- and {left:,} more"] if left else []
    return "\n".join([f"{why}{_STILL_OPEN}", *listed]) if listed else why


def without_findings(reason: str) -> str:
    """Returns what `at_limit_reason` got, for a text that lists the findings elsewhere."""
    return reason.partition(f"{_STILL_OPEN}\n")[0]


def shortened(text: str, longest: int = LONGEST) -> str:
    """Returns a text on one line, cut to a length that fits into a list."""
    return one_line(text, longest)


def finding_lines(content: ArtifactVersion, findings: Iterable[Finding]) -> list[str]:
    """Returns findings in lines; those that say the same about equal passages share one."""
    lines = []
    for group in group_equal(findings):
        first = group[0]
        why = first.reason or first.decision
        reason = f" ({one_line(why, LONGEST_FINDING)})" if why else ""
        also = f"; {describe_equal(group)}" if len(group) > 1 else ""
        lines.append(f"{finding_line(content, first)}{reason}{also}")
    return lines


def finding_line(content: ArtifactVersion, finding: Finding, longest: int = LONGEST_FINDING) -> str:
    """Returns a finding on one line, in the form that editors and CI systems recognize."""
    where = locate_finding(content, finding)
    place = f"{where.path}:{where.line}" if where is not None else finding.path
    if where is not None and not where.path:
        place = f"line {where.line}"
    rule = f"{finding.constraint}/{finding.rule}"
    if finding.rule in ("", finding.constraint):
        rule = finding.constraint
    doubt = " (unverified)" if finding.unverified else ""
    text = one_line(finding.finding, longest)
    line = f"{finding.severity.value} {rule}: {text}{doubt} [{finding.id}]"
    # What a check says about the project is about no file.
    return f"{place}: {line}" if place else line


def finding_details(group: Sequence[Finding], longest: int = LONGEST_FINDING) -> list[str]:
    """Returns what is needed to fix a finding by hand, and where its equals are."""
    finding = group[0]
    quote = "none, something is missing" if finding.omission else finding.quote
    details = {"quote": quote, "suggested fix": finding.suggested_fix}
    lines = [f"{name}: {one_line(text, longest)}" for name, text in details.items() if text]
    return [*lines, describe_equal(group)] if len(group) > 1 else lines


def format_issues(issues: Iterable[CritiqueIssue]) -> str:
    """Returns what critics report, for a human."""
    lines = []
    for issue in issues:
        place = f"{issue.path}{f':{issue.line}' if issue.line else ''}: " if issue.path else ""
        text = one_line(issue.finding, LONGEST_FINDING)
        lines.append(f"- {place}[{issue.severity}] {issue.id}: {text}")
        details = {"quote": issue.evidence, "suggested fix": issue.suggested_fix}
        lines += [
            f"  - {name}: {one_line(text, LONGEST_FINDING)}"
            for name, text in details.items()
            if text
        ]
    return "\n".join(lines)


def with_best(ctx: StepContext, state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the update that stores the reviewed artifact, unless an earlier one is better."""
    view = FlowState(state)
    best = best_version(view, ctx.iteration)
    return {} if best is view.best else {"best": best}


def best_version(view: FlowState, iteration: int) -> Mapping[str, Any]:
    """Returns the reviewed artifact with its findings, or an earlier one that is better."""
    findings = view.ledger.open()
    skipped = [name for names in view.not_repeated.values() for name in names]
    new = {
        **({"files": dict(view.files)} if view.has_files else {"artifact": view.artifact}),
        "round": iteration,
        "score": score_of(findings),
        "read_against": len({*skipped, *(each.constraint_id for each in view.critiques)}),
        "findings": [finding.to_json() for finding in findings],
    }
    best = view.best
    # About the same text, the latest reading counts: it may have found what others overlooked.
    if best is None or all(best.get(key) == new.get(key) for key in ("files", "artifact")):
        return new
    # Of two versions that are equally good the later one counts: it has the last fixes.
    return best if _rank(best) < _rank(new) else new


def score_of(findings: Sequence[Finding]) -> list[int]:
    """Returns how many findings of each severity there are, the worst first."""
    severities = [finding.severity for finding in findings]
    return [severities.count(severity) for severity in Severity]


def findings_of(
    best: Mapping[str, Any] | None, ledger: Ledger, block_on: Collection[Severity]
) -> list[Finding]:
    """Returns what is open in the best version; it may be older than what the ledger is about."""
    if best is None:
        return ledger.open(block_on)
    return sorted(map(Finding.from_json, best["findings"]), key=blocking_first(block_on))


def with_round(state: FlowState, ledger: Ledger, iteration: int) -> list[Mapping[str, Any]]:
    """Returns the rounds with the current one replaced by its latest numbers."""
    earlier = [each for each in state.rounds if each["round"] != iteration]
    return [*earlier, summarize_round(ledger, iteration)]


def _rank(version: Mapping[str, Any]) -> tuple[int, list[int]]:
    """Orders versions from good to bad; one reviewed against fewer constraints is worse."""
    return -int(version["read_against"]), list(version["score"])
