"""Decides whether a reviewer's reply approves by the phrase "SHIP IT".

A wrong rejection costs another turn; a wrong approval delivers a text that no reviewer approved.
So a reply approves only if all of this holds:

1. The phrase is in the reviewer's own words. Code blocks, quoted lines, quotations, crossed-out
   text, unchecked boxes and a model's thoughts are not.
2. In its clause there are only words of consent besides it: "Let's SHIP IT now!" approves, and
   "SHIP IT to Alaska" doesn't.
3. Nothing in its sentence, or in a following sentence that takes it back, negates it, makes it
   conditional, postpones it or asks.
4. No other clause of the reply is a refusal, such as "Verdict: revise".

A reply that is the phrase and nothing else always approves, however it is marked up.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import filterfalse
from typing import NamedTuple

from signoff.review.typography import limit_marks, plain_text

PHRASE = "SHIP IT"

_PHRASE = re.compile(r"\bship\s+it\b")
_LABEL = re.compile(r"\bship\s+it\s*[:=]")
"""The phrase as the name of a value: "SHIP IT: no"."""
_ONLY_PHRASE = re.compile(r"ship\s+it[\s!.\u3002]*+")

_OPENING = "\"'`\u2018\u201a\u201c\u201e\u00ab\u00bb\u2039\u203a\u300c\u300e\u300a\u3008"
_CLOSING = "\"'`\u2019\u2018\u201d\u201c\u00bb\u00ab\u203a\u2039\u300d\u300f\u300b\u3009"
_MARKS = f"{_OPENING}{_CLOSING}*_#~>\\- \t\r\n"
"""What may be around the phrase in a reply that is nothing else."""

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_HIDDEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(del|s|strike)\b[^<>]{0,200}>.*?(?:</\1>|\Z)|~~[^~]*~~",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-z][^<>]{0,200}>", re.IGNORECASE)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_FENCED_REPLY = re.compile(r"(`{3,}|~{3,})[\w-]*\s(.*?)\1", re.DOTALL)
_QUOTED_LINE = re.compile(r"\s*(?:>|[-*+]?\s*\[\s?\])")
_LIST_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)]|#{1,6})\s+")
_QUOTATIONS = re.compile(
    # An apostrophe is no quotation mark, so single ones count only around whole words.
    r"\"[^\"\n]*\"|`[^`\n]*`|\u201c[^\u201d\n]*\u201d|\u201e[^\u201c\u201d\n]*[\u201c\u201d]"
    r"|\u00ab[^\u00bb\n]*\u00bb|\u00bb[^\u00ab\n]*\u00ab|\u2039[^\u203a\n]*\u203a"
    r"|[\u300c\u300e\u300a\u3008][^\u300d\u300f\u300b\u3009\n]*[\u300d\u300f\u300b\u3009]"
    r"|(?<!\w)['\u2018\u201a][^'\u2018\u2019\n]*['\u2018\u2019](?!\w)"
)
_QUOTATION = " \ufffc "
"""Takes the place of a quotation; no word of consent."""

_SENTENCE_END = re.compile(r"([.!?\u2026\u3002\u061f\u0964]+)|\n[ \t]*\n\s*|\f")
_CLAUSE_END = re.compile(r"[,:;\u3001\u060c|/()\[\]{}\n\u00a1\u00bf]|\s-+\s|--+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|\ufffc")

_PRAISE = re.compile(
    r"\bno (?:further |more |other |additional )?(?:notes?|changes?|edits?|feedback|comments?"
    r"|issues?|complaints?|objections?|concerns?|revisions?|remarks?)\b"
    r"(?: (?:are |is )?(?:needed|required|necessary|left|from me))?"
    r"|\bnothing (?:left |more |else )?to (?:add|change|fix|improve)\b"
    r"|\b(?:no|without (?:a |any )?) ?(?:doubt|question|hesitation|reservations?)\b"
)
"""Negations that are praise."""

_CONSENT = frozenset(
    "a absolutely agreed ahead all alright am amazing and approve approved as awesome beautiful "
    "brilliant by can certainly completely decision definitely done easily everyone excellent "
    "fantastic final finally folks for fully gladly go good great happily happy i i'm immediately "
    "indeed is it's its just let let's lets love lovely means my nice now of ok okay one our "
    "outstanding perfect please ready really recommendation right say says simply so solid sure "
    "superb team terrific text that that's the this time to today totally truly us verdict very "
    "vote vote's we we're well wholeheartedly wonderful wow yeah yep yes you your slogan".split()
)
"""What may be in the same clause as the phrase."""

_HOLDS = frozenset(
    # negations
    "ain't barely cannot cant don't dont false hardly joking kidding neither never no nobody none "
    "nope nor not nothing refuse reject rejected rejecting scarcely unable unready without "
    "won't wont wouldnt "
    # conditions
    "after although assuming before but contingent depending except had however if once only or "
    "otherwise pending provided providing should subject then though unless until till when "
    "whenever were "
    # postponements
    "almost another could delay eventually far first hold later maybe may might nearly next "
    "perhaps postpone probably shortly someday soon still tomorrow wait would yet "
    # demands and objections
    "add change cut delete drop fix improve instead lack lacks make missing more must need needs "
    "remove replace revise rewrite rework shorten swap tighten too trim try tweak weak "
    # talk about the phrase
    "either format options phrase "
    # German, French, Spanish, Italian, Portuguese, Dutch and Russian
    "aber bevor bis erst falls kein keine nachdem nein nicht nie noch sobald sofern wenn "
    "apres avant des jamais lorsque mais ne non pas quand sauf sinon "
    "antes aun aunque cuando despues hasta jamas nunca pero todavia "
    "ancora dopo ma mai prima quando se depois mas nao ate als maar niet nog pas "
    "\u043d\u0435 \u043d\u0435\u0442 \u043d\u043e \u0435\u0441\u043b\u0438 \u043a\u043e\u0433\u0434"
    "\u0430 \u043f\u043e\u043a\u0430 \u043f\u043e\u0441\u043b\u0435".split()
)
"""What keeps a sentence with the phrase from approving."""
_SIGNS = (
    # Chinese, Japanese and Korean write these without spaces around them.
    "\u4e0d \u522b \u6ca1 \u672a \u4f46 \u5982\u679c \u9664\u975e \u4e4b\u540e \u4ee5\u540e "
    "\u306a\u3044 \u307e\u305b\u3093 \u307e\u3060 \u305f\u3089 \u308c\u3070 \u3051\u3069 "
    "\u1106\u1167\u11ab \u110b\u1161\u110c\u1175\u11a8 \u110b\u1161\u11ad "
    "\u274c \u274e \U0001f6ab \u26d4 \U0001f44e \u2717 \u2718 \U0001f6d1"
).split()
_TAKES_BACK = frozenset("actually joke joking kidding psych sarcasm scratch sike".split())
"""Words with which a sentence takes back what comes before it."""
_LABELS = frozenset("answer decision final is my recommendation result status the verdict".split())
"""What may introduce a refusal."""
_REFUSALS = frozenset(
    {
        *("declined", "fail", "failed", "needs work", "needs more work", "never", "no", "nope"),
        *("not approved", "not quite", "not ready", "not ready yet", "not yet", "redo", "reject"),
        *("rejected", "revise", "revision needed", "rewrite", "s", "stop", "try again", "wait"),
    }
)


class _Sentence(NamedTuple):
    text: str
    end: str
    """The punctuation that ends it."""


def is_approved(feedback: str, strict: bool = False, *, material: str = "") -> bool:
    """Returns whether a reply approves; `strict` accepts the phrase and nothing else.

    `material` is what was reviewed. If the phrase occurs in it, a longer reply may be quoting it,
    so then only a reply that is nothing but the phrase approves.
    """
    reply = _THOUGHTS.sub(" ", unicodedata.normalize("NFKC", limit_marks(feedback)))
    if _is_phrase(reply):
        return True
    if strict or _PHRASE.search(plain_text(material).casefold()):
        return False
    sentences = list(_sentences(_own_words(reply)))
    claims = [place for place, each in enumerate(sentences) if _PHRASE.search(each.text)]
    return (
        bool(claims)
        and all(_approves(sentences, place) for place in claims)
        and not any(map(_refuses, sentences))
    )


def _is_phrase(reply: str) -> bool:
    text = reply.strip()
    if fenced := _FENCED_REPLY.fullmatch(text):
        text = fenced[2]
    if _HIDDEN.search(text):
        return False
    bare = plain_text(_TAG.sub("", text).strip(_MARKS)).casefold().strip(_MARKS)
    return _ONLY_PHRASE.fullmatch(bare) is not None


def _own_words(reply: str) -> str:
    """Returns a reply without what it quotes, as plain text; list items are sentences."""
    lines: list[str] = []
    fence = ""
    for line in _HIDDEN.sub(" ", reply).splitlines():
        mark = _FENCE.fullmatch(line)
        if fence:
            closes = mark is not None and mark[1].startswith(fence) and not mark[2].strip()
            fence = "" if closes else fence
        elif mark is not None:
            fence = mark[1]
        elif not _QUOTED_LINE.match(line):
            item = _LIST_ITEM.match(line)
            lines.append(f"\f{line[item.end() :]}\f" if item else line)
    text = _QUOTATIONS.sub(_QUOTATION, _TAG.sub(" ", "\n".join(lines)))
    return _PRAISE.sub(" ", plain_text(text.replace("|", ",")).casefold())


def _sentences(text: str) -> Iterator[_Sentence]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if text[start : end.start()].strip():
            yield _Sentence(text[start : end.start()], end[1] or "")
        start = end.end()
    if text[start:].strip():
        yield _Sentence(text[start:], "")


def _approves(sentences: Sequence[_Sentence], place: int) -> bool:
    """Whether a sentence with the phrase approves, with what follows it."""
    text, end = sentences[place]
    if "?" in end or "\u061f" in end or _holds(text) or _LABEL.search(text):
        return False
    if any(not _consents(clause) for clause in _clauses(text) if _PHRASE.search(clause)):
        return False
    openings = [_words(each.text)[:2] for each in sentences[place + 1 :]]
    if any(word in _TAKES_BACK for opening in openings for word in opening):
        return False
    return not (openings and any(map(_is_hold, openings[0])))


def _clauses(text: str) -> list[str]:
    return _CLAUSE_END.split(text)


def _consents(clause: str) -> bool:
    return all(word in _CONSENT for word in _words(_PHRASE.sub(" ", clause)))


def _holds(text: str) -> bool:
    return any(map(_is_hold, _words(text))) or any(sign in text for sign in _SIGNS)


def _is_hold(word: str) -> bool:
    plain = unicodedata.normalize("NFD", word)
    return word.endswith("n't") or "".join(c for c in plain if c.isalnum() or c == "'") in _HOLDS


def _refuses(sentence: _Sentence) -> bool:
    clauses = (filterfalse(_LABELS.__contains__, _words(c)) for c in _clauses(sentence.text))
    return any(" ".join(words) in _REFUSALS for words in clauses)


def _words(text: str) -> list[str]:
    return _WORD.findall(text)
