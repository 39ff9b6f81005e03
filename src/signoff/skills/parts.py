"""What the skills of the library share: texts from Markdown, their task, and repeated steps.

The Markdown file beside a skill's module has everything that the skill says, so that it can be
edited as text. A comment on a line of its own begins each text and names it:

    <!-- scope: Pin down the change -->

    Read the task. Do: ...

    <!-- shared notes-in-reply -->

With a title, it is the text of that step. `description` says when to use the skill. A name with a
suffix, such as `notes.md`, is a file of the state directory as it begins. `shared` inserts a text
of `shared.md`, whose placeholders the values after its name fill in.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from signoff.core.args import Arg, Param
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.step import Edge, Handler, StepDef
from signoff.core.workflow import Workflow
from signoff.documents.named_texts import named_texts, read_texts
from signoff.skills.state import STATE_DIR, state_directory
from signoff.skills.types import Confidence

MAX_ROUNDS = 5
"""How often a step is done at most, unless a skill sets another bound."""

TASK = Param("task", str, Arg("what to work on, in a sentence or two"), default=None)
"""The input of a skill: in a run, there is no conversation that an agent could take it from."""

Result = tuple[Outcome, dict[str, Any]]

ConfidenceLevel = Annotated[
    str, Arg("how well the result is supported", choices=tuple(each.value for each in Confidence))
]
COVERAGE = ("started", "partial", "complete")
CoverageLevel = Annotated[str, Arg("how much of the list is done", choices=COVERAGE)]
Iteration = Annotated[
    int, Arg("the round of this step; leave it out in a run, which counts", min=1, max=MAX_ROUNDS)
]

_SHARED_FILE = Path(__file__).with_name("library") / "shared.md"
_SHARED = re.compile(r"^<!-- shared (.+) -->$", re.MULTILINE)


class _Text(NamedTuple):
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class SkillTexts:
    """The texts of a skill by name, and the skill that consists of them."""

    name: str
    """That of its module, with dashes."""
    texts: Mapping[str, _Text]

    @classmethod
    def beside(cls, module: str) -> SkillTexts:
        """Reads the Markdown file beside a module (its `__file__`)."""
        shared = read_texts(_SHARED_FILE)
        texts = {}
        # Shared texts become paragraphs of their own, so that a program that reads the steps as
        # JSON can tell them from the skill's own words.
        for name, title, text in named_texts(Path(module).with_suffix(".md")):
            # Split at a pattern with a group, every second part is what the group has matched.
            parts = enumerate(_SHARED.split(text))
            paragraphs = (_filled(shared, each) if n % 2 else each.strip("\n") for n, each in parts)
            texts[name] = _Text(title, tuple(filter(None, paragraphs)))
        return cls(Path(module).stem.replace("_", "-"), texts)

    @property
    def description(self) -> str:
        """What the skill is for, and what not."""
        return "".join(self.texts["description"].paragraphs)

    @property
    def files(self) -> dict[str, str]:
        """The files that a new state directory starts with."""
        named = {name: text for name, text in self.texts.items() if "." in name}
        return {name: "".join(f"{each}\n" for each in text[1]) for name, text in named.items()}

    def step(
        self,
        name: str,
        following: Mapping[Outcome, str | Edge | None],
        handler: Handler = None,
        *,
        edits: bool = False,
    ) -> StepDef:
        """Returns the step of a text, and where its outcomes lead."""
        title, actions = self.texts[name]
        return StepDef(name, title, actions, handler, following, edits=edits)

    def workflow(self, *steps: StepDef) -> Workflow:
        """Returns the skill; its task is an input, and so is the directory of its files."""
        prepare = state_directory(self.name, self.files) if self.files else None
        inputs = [TASK, STATE_DIR] if prepare is not None else [TASK]
        return Workflow(
            self.name, *steps, description=self.description, inputs=inputs, prepare=prepare
        )


def repeat_until(
    settled: bool, ctx: StepContext, iteration: int, bound: int = MAX_ROUNDS
) -> Result:
    """Returns how a round ends: OK if the result is settled or it was the last, else ITERATE.

    The bound keeps an agent that is never content from repeating a step for ever.
    """
    # Evaluated by hand, the round is a parameter; a run counts visits by itself.
    last = max(iteration, ctx.visit) >= bound
    return (Outcome.OK if settled or last else Outcome.ITERATE), {}


def until_confident(
    ctx: StepContext, confidence: ConfidenceLevel = "exploring", iteration: Iteration = 1
) -> Result:
    """Handles a step that is repeated until its result is well supported."""
    return repeat_until(confidence in (Confidence.HIGH, Confidence.CERTAIN), ctx, iteration)


def until_covered(
    ctx: StepContext, coverage: CoverageLevel = "started", iteration: Iteration = 1
) -> Result:
    """Handles a step that is repeated until a list, such as files to read, is worked through."""
    return repeat_until(coverage == "complete", ctx, iteration)


def _filled(shared: Mapping[str, str], words: str) -> str:
    # Quoted like the words of a command, so a value may contain blanks: `what="the plan"`.
    name, *values = shlex.split(words)
    return shared[name].format(**dict(each.split("=") for each in values))
