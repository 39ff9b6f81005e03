"""The prompts of pairs, built from a preset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.effects import ProductPrompt
from signoff.pair.presets import STRUCTURED_VERDICT, PairPreset
from signoff.pair.settings import PairSettings, Seat
from signoff.review.approval_phrase import PHRASE
from signoff.review.prompt_text import enclose
from signoff.review.reviewer_verdict import SCHEMA


def writer_prompt(
    preset: PairPreset,
    task: str,
    last: Mapping[str, Any] | None = None,
    version: tuple[int, int] = (1, 1),
) -> ProductPrompt:
    """Returns the prompt for a new version; `last` is the turn before, if there was one.

    `version` is the number of the candidate, and how many there are. A model that takes no seed
    writes different ones only if it is asked to.
    """
    parts = [preset.request.format(task=task)]
    if last is not None:
        parts += [
            f"Your previous {preset.noun}: {_shown(preset, last['text'])}",
            f"{preset.feedback_heading}\n{last['feedback']}",
            f"Write a better {preset.noun} that takes this into account.",
        ]
    number, count = version
    if count > 1:
        parts.append(f"This is version {number} of {count}; make it unlike the obvious one.")
    material = [task, last and [last["text"], last["feedback"]], *version]
    return ProductPrompt("\n\n".join(parts), material, system=preset.writer_system)


def reviewer_prompt(settings: PairSettings, seat: Seat, text: str) -> ProductPrompt:
    """Returns the prompt for a review of a text."""
    preset = settings.preset
    parts = [preset.review_request.format(text=_shown(preset, text))]
    about = {
        "It was written for this": settings.task,
        "It has to meet these criteria": settings.criteria,
        "Look only at this": seat.specialty,
    }
    parts += [f"{label}: {value}" for label, value in about.items() if value]
    structured = settings.verdict == STRUCTURED_VERDICT
    if structured and not seat.takes_schema:
        parts.append(
            f'If nothing has to change, reply with exactly "{PHRASE}!". Otherwise reply with what '
            "has to change."
        )
    schema = SCHEMA if structured and seat.takes_schema else None
    material = [text, settings.task, settings.criteria, seat.specialty]
    return ProductPrompt("\n\n".join(parts), material, system=preset.reviewer_system, schema=schema)


def _shown(preset: PairPreset, text: str) -> str:
    """Returns a text as prompts show it: a short one as it is, any other between delimiters.

    A long text could pretend to be a part of the prompt, and small models copy delimiters.
    """
    return text if preset.longest_text else f"\n\n{enclose('TEXT', text)}"
