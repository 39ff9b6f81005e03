"""How much a sub-agent may return: its result goes into the context of others.

Tokens are estimated as a quarter of the bytes in UTF-8, which is about right for English and for
code, and needs no tokenizer of any vendor.
"""

from __future__ import annotations

RETURN_TOKENS = 1_500
BYTES_PER_TOKEN = 4

BUDGET_RULE = (
    f"Return at most {RETURN_TOKENS:,} tokens, which is about {RETURN_TOKENS * BYTES_PER_TOKEN:,} "
    "characters; the rest is cut off."
)


def cut_return(text: str) -> str:
    """Returns a text within the budget: whole lines, with a mark where the others were cut off."""
    most = RETURN_TOKENS * BYTES_PER_TOKEN
    if _size(text) <= most:
        return text
    lines = text.split("\n")
    room = most - _size(_mark(len(lines)))
    kept: list[str] = []
    for line in lines:
        room -= _size(line) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept:
        # A single line that is too long would leave nothing at all.
        beginning = lines[0].encode("utf-8", "replace")[: most - _size(_mark(len(lines))) - 1]
        kept, lines = [beginning.decode("utf-8", "ignore")], ["", *lines]
    return "\n".join([*kept, _mark(len(lines) - len(kept))])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _mark(lines: int) -> str:
    more = "1 more line" if lines == 1 else f"{lines:,} more lines"
    return f"[cut off here: {more}; a sub-agent returns at most {RETURN_TOKENS:,} tokens]"
