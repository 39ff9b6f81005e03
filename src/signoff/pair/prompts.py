"""What agents of pairs are asked, built from a preset, and the text in a writer's reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from signoff.core.effects import ProductPrompt
from signoff.pair.config import PairSettings, Seat
from signoff.pair.presets import PRESETS, STRUCTURED_VERDICT, PairPreset
from signoff.review.prompt_text import enclose
from signoff.review.reviewer_verdict import PHRASE, SCHEMA

_QUOTED = re.compile('["\u201c\u00ab]([^"\u201c\u201d\u00ab\u00bb]+)["\u201d\u00bb]')
"""A text in quotation marks; a quotation inside a text is a part of it."""
_SINGLE_QUOTED = re.compile("\u2018([^\u2018]+)\u2019")
_EMPHASIZED = re.compile(r"([*_]{1,3})(?=\S)([^*_]+)(?<=\S)\1")
_LABEL = re.compile(
    r"[*_]{0,3}(?:(?:the|your|new|final|revised|improved|better)\s+){0,2}"
    r"(?:slogan|tagline|headline|title|version|answer|result|output)\s*:[*_]{0,3}\s*",
    re.IGNORECASE,
)
"""What small models write before a result of one line."""


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
        if last["text"]:
            parts.append(f"Your previous {preset.noun}: {_shown(preset, last['text'])}")
        parts += [
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
    preset = PRESETS[settings.preset]
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


def own_text(reply: str, preset: PairPreset) -> str:
    """Returns the text in a writer's reply, without thoughts before and explanations after it."""
    # Reasoning models write their thoughts into the answer; what follows the last of them is the
    # text.
    text = reply.rpartition("</think>")[2].strip()
    if not preset.one_paragraph:
        return text
    return _bare(re.split(r"\n\s*\n", _without_lead_in(text), maxsplit=1)[0].strip())


def _without_lead_in(text: str) -> str:
    """Returns a reply without a first line such as `Sure! Here is a slogan:`; empty if that is all.

    A slogan may have a colon at the end of a line; a lead-in is only a first line with nothing but
    marks behind its colon.
    """
    first, _, rest = text.partition("\n")
    return rest.strip() if first.rstrip(" *_").endswith(":") else text


def _bare(text: str) -> str:
    """Returns a text of one line without a label before it and marks around it."""
    if "\n" in text:
        quoted = _QUOTED.fullmatch(text)
        return quoted[1].strip() if quoted else text
    before = ""
    # Marks are nested in any order, as in a label before a bold quotation, so this goes on until
    # nothing is left to remove.
    while text != before:
        before = text
        for marks in (_QUOTED, _SINGLE_QUOTED, _EMPHASIZED):
            if inside := marks.fullmatch(text):
                text = inside[marks.groups].strip()
        if label := _LABEL.match(text):
            text = text[label.end() :]
    return text
