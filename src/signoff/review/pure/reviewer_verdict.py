"""Reads what one reviewer of a short text decided: by an object, or by the phrase "SHIP IT".

An object is asked for from agents that can be held to a schema. A text in its place is read by
the phrase: the reviewer has done its work, so it is not asked and paid for again.

A wrong rejection costs another turn; a wrong approval delivers a text that no reviewer approved.
So a longer reply approves only if all of this holds, and whatever the rules do not know rejects:

1. The phrase's sentence, up to a full stop or an empty line, has the phrase and `CONSENT` only:
   "Let's SHIP IT now!" approves, "SHIP IT to Alaska" and "SHIP IT: no" don't.
2. That sentence is the reviewer's own: not quoted, not hidden, not crossed out.
3. Nothing in the reply negates, postpones, makes a condition or asks (`_DOUBTS`), not even in a
   quotation: telling what a quotation means for the verdict is what these rules do not try.
4. Nothing in it is in letters other than English ones: those lists know no other language.

A reply that is the phrase and nothing else always approves, however it is marked up.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.effects import Reply
from signoff.documents.lenient_json import NotJson, load, strip_code_fence
from signoff.review.pure.critique import Overall
from signoff.review.pure.evidence import limit_marks, plain_text
from signoff.review.pure.parsing import parse_critique
from signoff.review.pure.reply_text import Material

BEST_SCORE = 10

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "feedback": {
            "type": "string",
            "description": "What has to change; empty if nothing has to.",
        },
        "score": {"type": "number", "description": f"From 0 to {BEST_SCORE}, the best."},
        "approved": {
            "type": "boolean",
            "description": "Whether the text is ready as it is; false if there is any feedback.",
        },
    },
    "required": ["feedback", "score", "approved"],
    "additionalProperties": False,
}
"""The feedback comes first, so that a model decides after it has looked."""

NO_FEEDBACK = "The reviewer asks for changes without giving a reason."

_NOTHING = frozenset(
    {"", "-", "n/a", "na", "none", "null", "nothing", "no feedback", "no changes", "no change"}
    | {"no changes needed", "nothing to change", "no objections", "no issues", "empty"}
)


@dataclass(frozen=True)
class ReviewerVerdict:
    """What one reviewer decided."""

    approved: bool
    feedback: str = ""
    """What has to change; empty if it approved."""
    score: float | None = None
    """From 0 to 10; None if the reviewer gave none."""


def read_verdict(reply: Reply, *, strict: bool = False, material: str = "") -> ReviewerVerdict:
    """Returns what a reply decides; `material` is what was reviewed.

    An object that approves and has objections does not approve.
    """
    stated = _object(reply)
    if stated is None:
        return verdict_of_text(reply.text, strict=strict, material=material)
    objections = str(stated.get("feedback") or "").strip()
    if objections.strip(" .!").casefold() in _NOTHING or is_approved(objections, strict=True):
        objections = ""
    score = _score(stated.get("score"))
    if stated["approved"] and not objections and not Material(material).contains(reply.text):
        return ReviewerVerdict(True, score=score)
    return ReviewerVerdict(False, objections or NO_FEEDBACK, score)


def verdict_of_text(text: str, *, strict: bool = False, material: str = "") -> ReviewerVerdict:
    """Returns what a text decides by the phrase."""
    if is_approved(text, strict, material=material):
        return ReviewerVerdict(True)
    return ReviewerVerdict(False, text.strip() or NO_FEEDBACK)


def verdict_of_critique(reply: Reply, reviewer: str) -> ReviewerVerdict:
    """Returns what a check decides: its critique lists everything that is wrong."""
    critique = parse_critique(reply, constraint_id=reviewer, reviewer=reviewer, iteration=1)
    if critique.overall is Overall.PASS and not critique.issues:
        return ReviewerVerdict(True)
    findings = [
        " ".join(filter(None, (each.finding, each.suggested_fix))) for each in critique.issues
    ]
    return ReviewerVerdict(False, "\n".join(findings) or critique.summary or NO_FEEDBACK)


def _object(reply: Reply) -> Mapping[str, Any] | None:
    """Returns the object that a reply is, if it has a verdict."""
    value = reply.value
    if value is None and reply.text.lstrip().startswith(("{", "`")):
        try:
            value = load(strip_code_fence(reply.text))
        except NotJson:
            return None
    has_verdict = isinstance(value, Mapping) and isinstance(value.get("approved"), bool)
    return value if has_verdict else None


def _score(raw: object) -> float | None:
    try:
        number = float(str(raw))
    except ValueError:
        return None
    return None if math.isnan(number) else min(max(number, 0.0), float(BEST_SCORE))


PHRASE = "SHIP IT"

CONSENT = frozenset(
    "and approve approved excellent go good great i i'm is it it's let's looks love now ok okay "
    "perfect please ready say that's the this time to verdict we're yes".split()
)
"""The words that may be in the same sentence as the phrase; 30 at most."""

_DOUBTS = frozenset(
    # negations
    "barely cannot cant declined dont fail failed hardly joke joking kidding mistake neither never "
    "no nobody none nope nor not nothing psych refuse reject rejected sarcasm scratch sike unable "
    "unready without wont "
    # conditions and postponements
    "almost although another assuming but contingent could delay depending except hold however if "
    "later maybe might nearly next once only or otherwise pending perhaps postpone provided soon "
    "still though tomorrow unless until wait when would yet "
    # requests for change
    "actually add change cut delete drop fix improve instead lack lacks make missing must need "
    "needs redo remove replace revise revision rewrite rework shorten should stop swap tighten "
    "too trim try tweak weak".split()
)
"""The words that keep any sentence of the reply from approving, beside those in "n't"."""
_DOUBTFUL_SIGNS = frozenset("?[<\u274c\u274e\u26d4\u2717\u2718\U0001f44e\U0001f6ab\U0001f6d1")
"""A question, an unchecked box, a tag that says whose words they are, a cross or a thumb down."""

_PHRASE = re.compile(r"\bship\s+it\b")
_ONLY_PHRASE = re.compile(r"ship\s+it[\s!.\u3002]*+")
_MARKS = "\"'`\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a*_#> \t\r\n-" + "".join(
    map(chr, range(0x3008, 0x3010))
)
"""What may be around the phrase in a reply that is nothing else."""
_TAG = re.compile(r"</?(?:b|i|em|p|strong|u)>", re.IGNORECASE)
_FENCED_REPLY = re.compile(r"(`{3,}|~{3,})[\w-]*\s(.*?)\1", re.DOTALL)

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_NOT_OWN = re.compile(
    # What is opened and not closed reaches to the end, so no part of a reply is read twice.
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)"
    r"|<!--.*?(?:-->|\Z)|<(?P<crossed>del|s|strike)\b[^<>]{0,200}>.*?(?:</(?P=crossed)>|\Z)"
    r"|~~.*?(?:~~|\Z)|^[ \t]*(?:[-*+][ \t]*)?>[^\n]*"
    # An apostrophe is no quotation mark, so single ones count only around whole words.
    r"|\"[^\"\n]*\"|`[^`\n]*`|\u201c[^\u201c\u201d\n]*\u201d|\u201e[^\u201c-\u201e\n]*[\u201c\u201d]"
    r"|\u00ab[^\u00ab\u00bb\n]*\u00bb|[\u3008-\u300f][^\u3008-\u300f\n]*[\u3008-\u300f]"
    r"|(?<!\w)['\u2018\u201a][^'\u2018\u2019\n]*['\u2018\u2019](?!\w)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_GAP = " \ufffc "
"""Stands for what is not the reviewer's own; the phrase's sentence must not have it."""
_SENTENCE_END = re.compile(r"[.!\u3002]+|\n[ \t]*\n")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_PUNCTUATION = re.compile(r"[\s,:;*_#|'\u00a1-]*")


def is_approved(feedback: str, strict: bool = False, *, material: str = "") -> bool:
    """Returns whether a reply approves; `strict` accepts the phrase and nothing else.

    `material` is what was reviewed. If the phrase occurs in it, a longer reply may be quoting it,
    so then only a reply that is nothing but the phrase approves.
    """
    reply = _THOUGHTS.sub(" ", unicodedata.normalize("NFKC", limit_marks(feedback)))
    if _is_phrase(reply):
        return True
    # A text that contains the phrase could approve itself through a reviewer that quotes it.
    if strict or _PHRASE.search(plain_text(material).casefold()):
        return False
    # What is not the reviewer's own leaves a gap and not nothing, or the words around a quotation
    # could join to a sentence that approves.
    own = plain_text(_NOT_OWN.sub(_GAP, reply)).casefold()
    claims = [each for each in _SENTENCE_END.split(own) if _PHRASE.search(each)]
    return bool(claims) and all(map(_consents, claims)) and not _has_doubts(reply)


def _is_phrase(reply: str) -> bool:
    text = reply.strip()
    if fenced := _FENCED_REPLY.fullmatch(text):
        text = fenced[2]
    bare = plain_text(_TAG.sub("", text).strip(_MARKS)).casefold().strip(_MARKS)
    return "~~" not in text and _ONLY_PHRASE.fullmatch(bare) is not None


def _consents(sentence: str) -> bool:
    """Whether a sentence has nothing but the phrase, words of consent and plain punctuation."""
    rest = _PHRASE.sub(" ", sentence)
    others = _WORD.sub(lambda word: "" if word[0] in CONSENT else "?", rest)
    return _PUNCTUATION.fullmatch(others) is not None


def _has_doubts(reply: str) -> bool:
    words = _WORD.findall(plain_text(reply).casefold())
    return not _DOUBTFUL_SIGNS.isdisjoint(reply) or any(
        word in _DOUBTS or word.endswith("n't") or not word.isascii() for word in words
    )
