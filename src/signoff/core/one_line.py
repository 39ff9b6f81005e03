"""Shortens texts for lists, prompts and messages."""

from __future__ import annotations


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
