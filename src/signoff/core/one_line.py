"""Shortens texts for lists, prompts and messages."""

from __future__ import annotations

LONGEST_SHOWN = 50_000
"""Characters of a text that a request to a human shows; requests are stored with the run."""


def cut(text: str) -> str:
    """Returns a text for a request to a human; a long one is in the run's files as a whole."""
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}\n… ({len(text):,} characters in all)"


def one_line(text: str, most: int) -> str:
    """Returns a text on one line of at most `most` characters.

    On one line it cannot pass for another entry of a list or another part of a prompt.
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def start_of(text: str, most: int = 200) -> str:
    """Returns the first words of a text on one line; a word is never cut in the middle."""
    short = one_line(text, most)
    if not short.endswith("…") or " " not in short:
        return short
    return f"{short.rpartition(' ')[0]} …"
