"""The one workflow of pairs: write, review, decide. Its parameters are the whole configuration.

A turn is one visit of GENERATING, REVIEWING and DECIDING. What a turn came to is appended to the
state's `turns` when it is decided, so a turn that fails halfway is not in there, and the replies
that it got are found again in the journal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from signoff.core.amounts import count
from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import Reply
from signoff.core.errors import AgentBadOutput, AgentError, UnknownName
from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, Result, StepDef
from signoff.core.stop_reason import NotConverging
from signoff.core.words import VERDICT_WORDS
from signoff.core.workflow import Workflow
from signoff.notation import AgentJob, Ask, CompileContext, RunReport
from signoff.pair.agents import own_text, reviewer_prompt, writer_prompt
from signoff.pair.config import (
    OLLAMA,
    PRESETS,
    SETTINGS,
    PairConfig,
    PairPreset,
    PairSettings,
    Seat,
    parse_check,
    resolve_settings,
)
from signoff.review.pure.reviewer_verdict import (
    NO_FEEDBACK,
    ReviewerVerdict,
    read_verdict,
    verdict_of_critique,
    verdict_of_text,
)
from signoff.review.pure.similarity import ALIKE, has_converged
from signoff.runtime.fanout import FELL_SHORT

Approve = Callable[[str], bool]
"""Decides about a reviewer's reply, in place of the usual rules."""

Perform = Callable[[StepContext, PairSettings, Approve | None], Awaitable[Result]]
"""Does the work of one step."""

TurnRecord = dict[str, Any]
"""One turn in a run's state: turn, text, approved, feedback, score, too_long, at, reviews."""

CHECKS = "checks"
"""The name under which built-in checks review."""


class PairPhase(StrEnum):
    """Where a pair is; each phase is a step."""

    INITIALIZED = "INITIALIZED"
    GENERATING = "GENERATING"
    REVIEWING = "REVIEWING"
    DECIDING = "DECIDING"
    COMPLETED = "COMPLETED"


MOST_TURNS = 10


def build(name: str, context: CompileContext, approve: Approve | None = None) -> Workflow:
    """Returns the workflow of a preset; `approve` decides about replies instead of the phrase."""
    if name not in PRESETS:
        raise UnknownName("preset of pairs", name, PRESETS)
    steps = []
    for phase, (title, _, edges) in _STEPS.items():
        handler = PairStep(phase, approve if phase is PairPhase.REVIEWING else None)
        steps.append(StepDef(phase.value, title=title, handler=handler, next=edges))
    return Workflow(
        name,
        *steps,
        description=f"A writer and reviewers: {PRESETS[name].summary}.",
        max_iterations=MOST_TURNS,
        notation="pair",
        inputs=tuple(each for each in PairConfig.model_fields if each != "preset"),
        required=("task",),
        # Completes the parameters of a run from the settings and the environment, once.
        prepare=lambda params: {SETTINGS: resolve_settings(name, params, context)},
    )


def asks(workflow: Workflow, params: Mapping[str, Any]) -> list[Ask]:
    """Returns the writer and the reviewers, each with the model that is named for it.

    The Ollama server of pairs has settings of its own, which the agent of that name does not know.
    """
    prepared = workflow.prepare(params) if workflow.prepare is not None else {}
    seats = PairSettings.model_validate(prepared[SETTINGS]).seats
    asked = [(seats.writer, AgentJob.WRITE), *((each, AgentJob.REVIEW) for each in seats.reviewers)]
    return [Ask(seat.agent, seat.model, job) for seat, job in asked if seat.agent != OLLAMA]


@dataclass(frozen=True)
class PairStep:
    """Performs one phase of a pair."""

    phase: PairPhase
    approve: Approve | None = None

    @property
    def definition(self) -> list[Any]:
        """What a run's digest covers of the step."""
        # The number is the version of the steps' behavior. A change of it would make every pair
        # under way ask its user to adopt a changed definition.
        own = [f"{self.approve.__module__}.{self.approve.__qualname__}"] if self.approve else []
        return ["pair", self.phase.value, 1, *own]

    async def __call__(self, ctx: StepContext) -> Result:
        """Performs the phase once."""
        try:
            settings = PairSettings.model_validate(ctx.workflow_params[SETTINGS])
            _, perform, _ = _STEPS[self.phase]
            return await perform(ctx, settings, self.approve)
        except FELL_SHORT as error:
            # These would be retried and then shown to a human. A pair ends with an error instead:
            # its caller is a program, which may resume it.
            failure = AgentError(str(error))
            failure.agent, failure.kind = getattr(error, "agent", ""), type(error).__name__
            raise failure from error


async def _open(ctx: StepContext, _settings: PairSettings, _approve: Approve | None) -> Result:
    names = ("task", "preset", "model_name", "max_turns")
    stored = ctx.workflow_params[SETTINGS]
    return Outcome.OK, {**{name: stored[name] for name in names}, "turns": []}


async def _generate(ctx: StepContext, settings: PairSettings, _approve: Approve | None) -> Result:
    """Writes a new version; one that is too long is sent back once."""
    turns = ctx.step_state["turns"]
    seat, preset = settings.seats.writer, PRESETS[settings.preset]
    try:
        checked = await ctx.ask(
            seat.agent,
            writer_prompt(preset, settings.task, turns[-1] if turns else None),
            key="write",
            read=partial(_read_text, preset=preset),
            retries=1,
            # Small models would copy what was wrong.
            show_previous=False,
            model=seat.model,
            timeout=seat.timeout,
            **seat.options,
        )
    except AgentBadOutput as error:
        text = own_text(error.partial, preset)
        if not text:
            raise
        # Half a text is still a version that reviewers can judge, and half a reply may have a
        # whole one in it.
        return Outcome.OK, {"text": text, "too_long": error.partial.strip().endswith(text)}
    return Outcome.OK, {"text": checked.value, "too_long": bool(checked.problems)}


def _read_text(reply: Reply, preset: PairPreset) -> str:
    text, longest = own_text(reply.text, preset), preset.longest_text
    if not text and reply.text.strip():
        raise AgentBadOutput(f"the answer has no {preset.noun} in it; reply with it alone")
    if not text:
        raise AgentBadOutput("the answer is empty")
    if longest is not None and len(text) > longest:
        problem = f"it has {len(text):,} characters; use at most {longest}"
        raise AgentBadOutput(problem, value=text, usable=True)
    return text


async def _review(ctx: StepContext, settings: PairSettings, approve: Approve | None) -> Result:
    text, seats = ctx.step_state["text"], settings.seats.reviewers

    async def one(item: StepContext, place: int) -> dict[str, Any]:
        verdict = await _verdict(item, settings, seats[place], text, approve)
        return {"reviewer": seats[place].name, **asdict(verdict)}

    # A single reviewer reads in the step itself, so the journal has no layer that a reader would
    # have to look through.
    if len(seats) > 1:
        reviews = await ctx.map(range(len(seats)), one, key="reviews")
    else:
        reviews = [await one(ctx, place) for place in range(len(seats))]
    return Outcome.OK, {"reviews": [*_checked(text, settings), *reviews]}


def _checked(text: str, settings: PairSettings) -> list[dict[str, Any]]:
    """Returns the review of the checks, if there are any: it is computed, without an agent."""
    if not settings.checks:
        return []
    problems = list(filter(None, (parse_check(rule)(text) for rule in settings.checks)))
    score = 10.0 * (1 - len(problems) / len(settings.checks))
    review = {"reviewer": CHECKS, "approved": not problems, "score": round(score, 1)}
    return [{**review, "feedback": "\n".join(problems)}]


async def _verdict(
    ctx: StepContext, settings: PairSettings, seat: Seat, text: str, approve: Approve | None
) -> ReviewerVerdict:
    # A check gets the bare text: a prompt around it would be part of what it measures.
    if seat.is_check:
        reply = await ctx.ask(seat.agent, text, key="check", timeout=seat.timeout)
        return verdict_of_critique(reply, seat.name)
    try:
        reply = await ctx.ask(
            seat.agent,
            reviewer_prompt(settings, seat, text),
            key="review",
            model=seat.model,
            timeout=seat.timeout,
            **seat.options,
        )
    except AgentBadOutput as error:
        # An empty or cut-off reply is no approval, and what there is of it is feedback.
        return ReviewerVerdict(False, verdict_of_text(error.partial, strict=True).feedback)
    if approve is not None:
        return ReviewerVerdict(approve(reply.text), reply.text.strip() or NO_FEEDBACK)
    # A reviewer that repeats the text repeats its words too. A phrase that the material contains is
    # no approval of the reviewer's.
    material = f"{settings.task}\n{settings.criteria}\n{text}"
    return read_verdict(reply, strict=settings.strict, material=material)


async def _decide(ctx: StepContext, settings: PairSettings, _approve: Approve | None) -> Result:
    state = ctx.step_state
    version = {name: state[name] for name in ("text", "too_long")}
    turn = decided_turn(len(state["turns"]) + 1, version, state["reviews"], ctx.now().timestamp())
    turns = [*state["turns"], turn]
    for line in turn_lines(turn, settings.max_turns):
        ctx.log(line)
    outcome = Outcome.OK if turn["approved"] else Outcome.FAIL
    # Convergence ends a pair only where another turn would follow: at the last turn, the limit is
    # the reason that a user can do something about.
    if should_continue_iteration(len(turns), settings.max_turns, turn["approved"]):
        converged = has_converged([each["text"] for each in turns])
        outcome = Outcome.SKIP if converged else Outcome.ITERATE
    return outcome, {"turns": Append([turn]), "ending": outcome.value}


def should_continue_iteration(turn_number: int, max_turns: int, approved: bool) -> bool:
    """Returns whether another turn follows this one."""
    return not approved and turn_number < max_turns


async def _complete(ctx: StepContext, _settings: PairSettings, _approve: Approve | None) -> Result:
    turns, outcome = ctx.step_state["turns"], Outcome(ctx.step_state["ending"])
    final = turns[-1]
    update: dict[str, Any] = {"final": final["text"], "final_turn": final["turn"]}
    last = len(turns)
    if outcome is Outcome.SKIP:
        alike = f"turns {last - 1} and {last} are more than {ALIKE:g} alike"
        update["_reason"] = NotConverging("converged", alike)
    elif outcome is Outcome.FAIL:
        update["_reason"] = f"did not pass in {count(last, 'turn')}"
    return outcome, update


# The graph is the same for every pair, so it has room for the most turns; how many this pair may
# have is decided by its settings in `DECIDING`.
_ANOTHER_TURN = Edge(PairPhase.GENERATING, bound=MOST_TURNS - 1, starts_iteration=True)
_STEPS: Mapping[PairPhase, tuple[str, Perform, Mapping[Outcome, str | End | Edge | None]]] = {
    PairPhase.INITIALIZED: ("Start", _open, {Outcome.OK: PairPhase.GENERATING}),
    PairPhase.GENERATING: ("Write", _generate, {Outcome.OK: PairPhase.REVIEWING}),
    PairPhase.REVIEWING: ("Review", _review, {Outcome.OK: PairPhase.DECIDING}),
    PairPhase.DECIDING: (
        "Decide",
        _decide,
        {
            Outcome.OK: PairPhase.COMPLETED,
            Outcome.ITERATE: _ANOTHER_TURN,
            Outcome.SKIP: PairPhase.COMPLETED,
            Outcome.FAIL: PairPhase.COMPLETED,
        },
    ),
    PairPhase.COMPLETED: (
        "Result",
        _complete,
        {Outcome.OK: None, Outcome.SKIP: End.NOT_CONVERGING, Outcome.FAIL: End.LIMIT},
    ),
}
"""The title of each step, what it does, and where its outcomes lead."""


def decided_turn(
    number: int, version: Mapping[str, Any], reviews: Sequence[Mapping[str, Any]], at: float
) -> TurnRecord:
    """Returns the record of a turn: its version, a text that may be too long, and its reviews."""
    # A reviewer without a score, such as one that answers in prose, leaves the mean to the others.
    scores = [each["score"] for each in reviews if each["score"] is not None]
    # Unanimous, and never by default: without a review nothing has been looked at.
    approved = bool(reviews) and all(each["approved"] for each in reviews)
    return {
        **version,
        "turn": number,
        "approved": approved,
        "feedback": None if approved else _feedback(reviews),
        "score": round(sum(scores) / len(scores), 2) if scores else None,
        "at": at,
        "reviews": list(reviews),
    }


def turn_lines(turn: Mapping[str, Any], max_turns: int) -> Iterator[str]:
    """Yields a turn as lines for humans: the text, the verdict and the feedback."""
    yield f"turn {turn['turn']} of {max_turns}: {turn['text']}"
    score = f", score {turn['score']:g}" if turn["score"] is not None else ""
    long = ", longer than allowed" if turn["too_long"] else ""
    yield f"{VERDICT_WORDS['APPROVED' if turn['approved'] else 'REWRITE']}{score}{long}"
    if turn["feedback"]:
        yield f"feedback: {turn['feedback']}"


def _feedback(reviews: Sequence[Mapping[str, Any]]) -> str:
    """Returns what has to change; with several reviewers, each remark with its author."""
    remarks = [(each["reviewer"], each["feedback"]) for each in reviews if not each["approved"]]
    if len(reviews) == 1:
        return str(remarks[0][1])
    return "\n".join(f"{name}: {text}" for name, text in remarks)


def report(state: Mapping[str, Any], _definition: Mapping[str, Any]) -> RunReport:
    """Returns the report on a pair from the state of its run."""
    turns = list(state.get("turns", ()))
    final = state.get("final")
    names = ("task", "preset", "model_name", "max_turns", "final_turn")
    facts = {
        "turns": turns,
        "final": final,
        **{name: state[name] for name in names if name in state},
    }
    summary = f"{state.get('preset', 'text')}: {final}" if final else ""
    lines = [list(turn_lines(turn, state["max_turns"])) for turn in turns]
    details = "\n".join("\n  ".join(each) for each in lines)
    return RunReport(summary, details, lambda: {"pair": facts}, final or "")
