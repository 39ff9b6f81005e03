"""Improves the artifact by the judge's bill of work.

`apply` makes its literal edits exactly and asks an agent only for the rest; `edit` lets
an agent change a working copy; `rewrite` has the whole text written again. What changed
is recorded hunk by hunk, each tied to the finding it answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from signoff.core.checked import Checked, Otherwise
from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt, Reply
from signoff.core.outcome import Outcome
from signoff.core.requests import Answer, Choice, Request, Response
from signoff.errors import AgentBadOutput
from signoff.flows.flow import Flow
from signoff.flows.state import NOTHING_REVIEWED, FlowState, after
from signoff.flows.step import StepKind, WorkflowStep
from signoff.flows.steps.ending import Work, at_last_round, save_unapproved
from signoff.flows.steps.generate import author_prompt, checked_artifact
from signoff.flows.steps.updates import keep_answer, keep_warnings
from signoff.flows.steps.work_order import bill_of, wanted_edits
from signoff.review.edit import apply_edits
from signoff.review.hunks import tie_hunks, word_change_pct
from signoff.review.prompts import refinement_prompt

FILE = "artifact.md"
BY_HAND, REGENERATE, ACCEPT = "edit by hand", "regenerate", "accept"


@dataclass(frozen=True)
class Refine:
    """The handler of a refine step."""

    flow: Flow
    step: WorkflowStep

    @property
    def definition(self) -> list[Any]:
        """What a run depends on; the flow itself is kept with the run."""
        return ["flows", "refine", 1]

    async def __call__(self, ctx: StepContext) -> Work:
        """Returns the artifact with the bill of work done, as far as it could be."""
        state = FlowState(ctx.step_state)
        bill = bill_of(state)
        edits = wanted_edits(state, bill)
        applied = apply_edits(state.artifact, edits if self.step.mode == "apply" else [])
        if self.step.mode == "apply":
            bill = bill_of(state, applied)
            if bill.strip() and self._anew:
                # The edits would be lost with the text they were made in.
                applied = apply_edits(state.artifact, [])
        update: dict[str, Any] = {}
        text, problem = applied.text, ""
        if bill.strip():
            text, problem, update = await self._revised(ctx, state, applied.text, bill)
        quotes = [(f.id, f.quote) for f in state.ledger.open()]
        hunks = tie_hunks(state.artifact, text, edits, quotes)
        update |= {
            "artifact": text,
            "artifact_path": self._path(ctx.iteration),
            "step_index": self.flow.leads_to(self.step),
            "step": {
                "kind": "refine",
                "step": self.step.id,
                "agent": self._agent if bill.strip() else "",
                "mode": self.step.mode,
                "applied": [edit.to_json() for edit in applied.applied],
                "unmatched": [[edit.to_json(), why] for edit, why in applied.unmatched],
                "hunks": hunks,
                "unclaimed": sum(hunk["issue"] is None for hunk in hunks),
                "problem": problem,
            },
        }
        if problem:
            ctx.progress(f"the refinement {problem}")
            update |= keep_warnings(ctx, [f"the refinement {problem}"])
        if self.step.loop_to is not None:
            update |= NOTHING_REVIEWED
        if at_last_round(ctx, self.flow, self.step):
            update |= await save_unapproved(ctx, self.flow, after(ctx.step_state, update))
        return Outcome.OK, update

    @property
    def _agent(self) -> str:
        return self.flow.agent(self.step)

    async def _revised(
        self, ctx: StepContext, state: FlowState, text: str, bill: str
    ) -> tuple[str, str, dict[str, Any]]:
        """Returns the revised text, what is wrong with it, and what a person said about that."""
        asks = self.step.on_invalid != "continue"
        in_place = {} if self._in_words else {"files": {FILE: text}, "edit": True}
        checked = await ctx.ask(
            self._agent,
            self._prompt(ctx, state, text, bill),
            key="refine",
            read=partial(self._read, ctx, text),
            retries=self.step.validation_retries,
            otherwise=Otherwise(self._invalid, key="invalid") if asks else None,
            show_previous=not self._anew,
            model=self.step.model,
            timeout=self.step.timeout,
            **in_place,
        )
        problem, revised = "; ".join(checked.problems), checked.value
        if checked.answer is not None:
            return await self._decided(ctx, state, (text, revised or text, bill), checked)
        return revised or text, problem, {}

    def _prompt(self, ctx: StepContext, state: FlowState, text: str, bill: str) -> str:
        if self._in_words:
            return self._rewrite_prompt(ctx, state, text, bill, ctx.feedback or "")
        return refinement_prompt(
            filename=FILE,
            bill_of_work=bill,
            goal=self.flow.goal.text,
            guidance=state.guidance,
            feedback=ctx.feedback or "",
        )

    def _read(self, ctx: StepContext, before: str, reply: Reply) -> str:
        """Returns the revised text; raises what is wrong with it."""
        elsewhere = [path for path in reply.files if path.startswith("..")]
        if elsewhere:
            ctx.progress(f"changed meanwhile, outside the copy: {', '.join(elsewhere)}")
        revised = _edited(reply, before)
        problem = self._problem(before, revised)
        if problem:
            usable = self.step.on_invalid == "continue"
            raise AgentBadOutput(problem, value=revised, usable=usable)
        return revised

    @property
    def _in_words(self) -> bool:
        """Whether the agent answers with the text itself."""
        return in_words(self.flow, self.step)

    @property
    def _anew(self) -> bool:
        """Whether it does so without having seen the text there is."""
        return self._in_words and self.step.prompt == "brief"

    def _rewrite_prompt(
        self, ctx: StepContext, state: FlowState, text: str, bill: str, feedback: str
    ) -> str:
        return author_prompt(
            self.flow,
            self.step,
            sources=state.source(),
            previous=text,
            bill_of_work=bill,
            guidance=[*state.guidance, *([feedback] if feedback else [])],
            iteration=ctx.iteration,
        )

    def _problem(self, before: str, after: str) -> str:
        if after.strip() == before.strip():
            return "changed nothing"
        most = self.step.max_size_change_pct
        if most is None or self.step.mode == "rewrite":
            return ""
        changed = word_change_pct(before, after)
        return (
            f"changed the size by {changed:.0f} %, more than {most:g} %" if changed > most else ""
        )

    def _invalid(self, last: Checked[str]) -> Request:
        prompt = (
            f"The refinement {'; '.join(last.problems)}, and sending it back did not help. "
            f"{BY_HAND} asks you for the text, {REGENERATE} has it written anew"
        )
        if last.value is None:
            return Choice(
                ProductPrompt(f"{prompt}."), [BY_HAND, REGENERATE], question_id="validation_failed"
            )
        return Choice(
            ProductPrompt(f"{prompt}, {ACCEPT} takes it as it is."), [BY_HAND, REGENERATE, ACCEPT],
            question_id="validation_failed", shown={"revised": last.value},
        )  # fmt: skip

    async def _decided(
        self, ctx: StepContext, state: FlowState, texts: tuple[str, str, str], checked: Checked[str]
    ) -> tuple[str, str, dict[str, Any]]:
        """Returns what a human made of a revision that retries did not fix."""
        (before, revised, bill), problem = texts, "; ".join(checked.problems)
        answer = checked.answer or Answer(ACCEPT)
        update = keep_answer(ctx, "validation_failed", f"The refinement {problem}.", answer)
        if answer.value == ACCEPT:
            return revised, problem, update
        if answer.value == REGENERATE:
            prompt = self._rewrite_prompt(ctx, state, before, bill, problem)
            reply = await ctx.ask(
                self._agent, prompt, key="refine", model=self.step.model, timeout=self.step.timeout
            )
            return checked_artifact(reply.text), "", update
        form = f"Write the whole revised text. What is to be done:\n\n{bill}\n\n{before}"
        by_hand = await ctx.wait(Response(ProductPrompt(form)), key="by hand")
        return checked_artifact(str(by_hand.value)), "", update

    def _path(self, iteration: int) -> str:
        first = self.flow.of_kind(StepKind.REFINE)[0]
        tail = "" if self.step.id == first.id else f"_{self.step.id}"
        return f"iterations/{iteration}/artifact_refined{tail}.md"


def in_words(flow: Flow, step: WorkflowStep) -> bool:
    """Tells whether a refine step has the text written again instead of a file edited."""
    return step.mode == "rewrite" or not flow.capabilities(flow.agent(step)).edits_files


def _edited(reply: Reply, before: str) -> str:
    """Returns the working copy as it was left; a person standing in writes the text itself."""
    if reply.contents is None:
        return checked_artifact(reply.text)
    left = reply.contents.get(FILE, "")
    if not left.strip():
        return before
    checked_artifact(left)
    return left
