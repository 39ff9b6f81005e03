"""The presets of pairs, as data: their defaults; the system prompts are in `presets.md`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from signoff.documents.named_texts import read_texts

PHRASE_VERDICT = "phrase"
STRUCTURED_VERDICT = "structured"
VERDICTS = (PHRASE_VERDICT, STRUCTURED_VERDICT)

OLLAMA = "ollama"
"""The agent that gets the configuration of pairs: its server, model, temperature and tokens."""

# The reviewers' text names the phrase of `reviewer_verdict`, word for word: with any other one, no
# reply of theirs would approve.
_TEXTS = read_texts(Path(__file__).with_name("presets.md"))


@dataclass(frozen=True)
class PairPreset:
    """What a pair writes, and how it is asked for and reviewed."""

    name: str
    summary: str
    noun: str
    """What is written."""
    writer_system: str
    reviewer_system: str
    request: str
    """The writer's prompt; `{task}` is what the user wants."""
    review_request: str
    """How the reviewer's prompt begins; `{text}` is what was written."""
    feedback_heading: str
    """What introduces the remarks of the reviewers in the writer's prompt."""
    verdict: str
    """How reviewers decide unless the user chooses: by the phrase, or with an object."""
    agent: str = ""
    """The writer and the reviewer unless the user names some; empty for the project's default."""
    longest_task: int | None = None
    """Characters."""
    longest_text: int | None = None
    """Characters; a longer text is sent back to the writer once."""
    max_tokens: int | None = None
    """Tokens of an answer unless they are configured; None leaves that to the agent."""
    one_paragraph: bool = False
    """Whether only the first paragraph is the text: small models explain it in further ones."""


SLOGAN = PairPreset(
    name="slogan",
    summary="a slogan for a product",
    noun="slogan",
    writer_system=_TEXTS["slogan-writer"],
    reviewer_system=_TEXTS["slogan-reviewer"],
    request="Create a slogan for: {task}",
    review_request="Please review this slogan: {text}",
    feedback_heading="Previous feedback:",
    verdict=PHRASE_VERDICT,
    agent=OLLAMA,
    longest_task=500,
    longest_text=500,
    max_tokens=100,
    one_paragraph=True,
)

TEXT = PairPreset(
    name="text",
    summary="any short text, by a task that reaches the writer unchanged",
    noun="text",
    writer_system=_TEXTS["text-writer"],
    reviewer_system=_TEXTS["text-reviewer"],
    request="{task}",
    review_request="Please review this text: {text}",
    feedback_heading="Remarks of the reviewers about your previous version:",
    verdict=STRUCTURED_VERDICT,
)

PRESETS: Mapping[str, PairPreset] = {each.name: each for each in (SLOGAN, TEXT)}
