"""Reads a judge's reply about a file: approved or rejected, with feedback.

    DECISION: REJECTED
    FEEDBACK: The second table has no primary key.
    SUGGESTED_CONTENT:
    ...

A reply approves only if it has exactly one line with a decision and that is `APPROVED`. All else
is a rejection: a wrong rejection costs another attempt or a look by a human, a wrong approval
passes a file that no judge approved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from signoff.review.pure.reply_text import Material

LONGEST_FEEDBACK = 500
"""Characters of a reply that serve as feedback if it has none of its own."""

EMPTY_REPLY = "the judge's reply is empty"

_APPROVED = "APPROVED"
_REJECTED = "REJECTED"
_DECISION = "DECISION"
_FEEDBACK = "FEEDBACK"
_SUGGESTION = "SUGGESTED_CONTENT"

# Emphasis and headings are common. A block quote is not the judge's own line, so `>` is missing.
_LABEL = re.compile(
    rf"[ \t#*_`]*+({_DECISION}|{_FEEDBACK}|SUGGESTED[_ ]CONTENT)[ \t*_`]*+:[*_`]*+(.*)",
    re.IGNORECASE | re.ASCII,
)
_MENTION = re.compile(
    rf"\b{_DECISION}\b[^\w\n]*+({_APPROVED}|{_REJECTED})\b", re.IGNORECASE | re.ASCII
)
_NOTHING = frozenset({"", "none", "n/a", "-"})
_FENCE = re.compile(r"(`{3,}+|~{3,}+)(.*)")


@dataclass(frozen=True)
class JudgeDecision:
    """What a judge decided about a file."""

    approved: bool
    feedback: str | None = None
    """What has to change; a rejection always has some."""
    suggested_content: str | None = None
    """The file as the judge would have written it."""


def read_decision(
    text: str, *, allow_rewrite: bool = False, material: Material | None = None
) -> JudgeDecision:
    """Returns what a reply decides; everything that is not clearly an approval is a rejection.

    `material` is what was judged. If it contains the same decision, the reply may be quoting
    it: then only a reply counts that begins with its decision and gives a reason of its own.
    """
    reply = _Reply(text)
    if reply.decisions == [_REJECTED]:
        suggestion = reply.suggestion if allow_rewrite else None
        return JudgeDecision(False, reply.feedback or _beginning(text), suggestion)
    if reply.decisions != [_APPROVED] or _REJECTED in reply.mentions:
        return JudgeDecision(False, _beginning(text))
    if material is not None and not reply.is_own(material):
        doubt = "the decision also occurs in the judged file, and may be quoted from it"
        return JudgeDecision(False, f"{doubt}: {_beginning(text)}")
    return JudgeDecision(True, reply.feedback, reply.suggestion if allow_rewrite else None)


class _Reply:
    """The parts of a reply."""

    def __init__(self, text: str) -> None:
        self.decisions: list[str] = []
        """The values of all lines with a decision, valid or not."""
        self._sections: dict[str, list[str]] = {"": [], _FEEDBACK: [], _SUGGESTION: []}
        self.mentions = {each.upper() for each in _MENTION.findall(text)}
        """The decisions that occur anywhere, even in a quotation or in the suggested content."""
        section = ""
        for line in text.replace("\r\n", "\n").split("\n"):
            # The suggested content goes up to the end, whatever its lines look like.
            label = None if section == _SUGGESTION else _LABEL.fullmatch(line)
            if label is None:
                self._sections[section].append(line)
                continue
            section = label[1].upper().replace(" ", "_")
            if section == _DECISION:
                self.decisions.append(label[2].strip(" \t\r*_`.").upper())
                section = ""
            else:
                self._sections[section].append(label[2])

    @property
    def feedback(self) -> str | None:
        """Its feedback, if there is any."""
        return _content(self._sections[_FEEDBACK])

    @property
    def suggestion(self) -> str | None:
        """The suggested content, without the code fence around it."""
        text = _without_fence(_content(self._sections[_SUGGESTION]) or "")
        return f"{text}\n" if text.strip() else None

    def is_own(self, material: Material) -> bool:
        """Whether its approval is certainly not quoted from the material."""
        if not material.contains(f"{_DECISION}: {_APPROVED}"):
            return True
        begins_with_it = not "".join(self._sections[""]).strip()
        return begins_with_it and bool(self.feedback) and not material.contains(self.feedback or "")


def _content(lines: list[str]) -> str | None:
    text = "\n".join(lines).strip()
    if text.strip(".").lower() in _NOTHING:
        return None
    # The text may begin next to its label; the indentation of later lines is part of it.
    return "\n".join([lines[0].strip(), *lines[1:]]).lstrip("\n").rstrip()


def _without_fence(text: str) -> str:
    """Returns a text without the code fence that begins with its first line, ends with its last."""
    lines = text.split("\n")
    opening = _FENCE.fullmatch(lines[0])
    depth = 0
    for number, line in enumerate(lines if opening else ()):
        fence = _FENCE.fullmatch(line.rstrip())
        if not (opening and fence and fence[1] == opening[1]):
            continue
        # A fence with a language begins a block inside; a bare one ends the innermost.
        depth += 1 if number == 0 or fence[2] else -1
        if depth == 0:
            return "\n".join(lines[1:number]) if number == len(lines) - 1 else text
    return text


def _beginning(text: str) -> str:
    return text.strip()[:LONGEST_FEEDBACK].rstrip() or EMPTY_REPLY
