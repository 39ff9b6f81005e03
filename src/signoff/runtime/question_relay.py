"""Questions of a sub-agent to the user: how it asks, how its reply is parsed, what it gets back.

A sub-agent asks by replying with one `<needs_user_input>` block and nothing else. A block is
parsed completely or refused with the reason: half a question could lead to an answer to something
that was never asked. It is text from a model, so it is bounded before it is parsed, and everything
by which XML could name, define or include other text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any
from xml.parsers import expat

from signoff.core.questions import Option, UserQuestion, check_headers
from signoff.errors import UsageError

TAG = "needs_user_input"
MOST_QUESTIONS = 3
FEWEST_OPTIONS, MOST_OPTIONS = 2, 3
LONGEST_HEADER = 12
LONGEST_BLOCK = 20_000
"""Characters; nine options with a paragraph each are far below."""
MOST_ROUNDS = 5
"""How often a sub-agent may ask before it has to decide."""

SUB_AGENT_QUESTION_FORMAT = f"""\
If you need a decision from the user:

Ask only if the answer changes what you do next, and if you cannot find it in the files, in your
instructions or in an earlier <user_response>. Otherwise decide yourself and state what you assumed.

Before you ask, save your progress in the state directory, if you were given one. You will be
started again from the beginning with the answers, and you will remember nothing else. Then reply
with one block like this and nothing else: no text before or after it, and no code fence.

<{TAG}>
  <question header="Storage" multi_select="false">
    <text>Where should the service keep its records?</text>
    <option label="SQLite">One file and no server. Enough while a single machine writes.</option>
    <option label="Postgres">A server to operate. Needed once several machines write.</option>
  </question>
</{TAG}>

- 1 to {MOST_QUESTIONS} questions. Ask related questions together. If one answer decides whether \
another question
  matters, ask only the first.
- header: a different one for each question, up to {LONGEST_HEADER} characters.
- text: the complete question. The user sees the block and nothing else of your work.
- {FEWEST_OPTIONS} or {MOST_OPTIONS} options that lead to different results, the one you recommend \
first. The label is what the user
  picks; the text of the option says what follows from it. Leave out "other": the user can add a
  comment to any answer.
- multi_select: "true" if several options can hold together, else "false". At least one is always
  chosen, so where none is possible, make that an option.
- Write &lt; for <, &amp; for & and, inside a label or header, &quot; for ".

The answers come back as <user_response>. Follow them, and do not ask the same thing again. You may
ask at most {MOST_ROUNDS} times."""

_TAG = re.compile(rf"</?{TAG}\b", re.IGNORECASE)
_CHILDREN: Mapping[str, tuple[str, ...]] = {
    "": (TAG,),
    TAG: ("question",),
    "question": ("text", "option"),
    "text": (),
    "option": (),
}
"""What an element may contain; only those that contain no others may contain text."""
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "question": ("header", "multi_select"),
    "option": ("label",),
}


@dataclass(frozen=True)
class QuestionRound:
    """The questions that a sub-agent asked at once, and the user's answer."""

    questions: tuple[UserQuestion, ...]
    answers: Mapping[str, str | Sequence[str]]
    """The chosen label, or labels, by header."""
    comment: str = ""


def parse_questions(text: str) -> tuple[UserQuestion, ...] | None:
    """Returns the questions of a reply; None if it asks nothing.

    Raises `ValueError` with the reason for a reply that mentions the block, but is not exactly one
    valid block.
    """
    if _TAG.search(text) is None:
        return None
    block = _Element("")
    _parse(_whole_block(text), block)
    root = block.children[0]
    if not 1 <= len(root.children) <= MOST_QUESTIONS:
        raise ValueError(f"it has {len(root.children)} questions; ask 1 to {MOST_QUESTIONS}")
    try:
        questions = tuple(
            _question(element, number) for number, element in enumerate(root.children, 1)
        )
        check_headers(questions)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return questions


def user_response(rounds: Sequence[QuestionRound]) -> str:
    """Returns the user's answers to all questions so far, as the sub-agent gets them."""
    lines = ["<user_response>"]
    for each in rounds:
        for question in each.questions:
            lines += _answer_lines(question, each.answers[question.header])
        if each.comment.strip():
            lines.append(f"  <comment>{escape(each.comment.strip(), quote=False)}</comment>")
    return "\n".join([*lines, "</user_response>"])


def typed_response(answers: Sequence[tuple[str, str]]) -> str:
    """Returns answers of which only the header and the chosen label are known, in the same form."""
    chosen: dict[str, list[str]] = {}
    for header, label in answers:
        chosen.setdefault(header, []).append(label)
    lines = ["<user_response>"]
    for header, labels in chosen.items():
        choices = (f'    <choice label="{escape(label)}"></choice>' for label in labels)
        lines += [f'  <answer header="{escape(header)}">', *choices, "  </answer>"]
    return "\n".join([*lines, "</user_response>"])


def _answer_lines(question: UserQuestion, chosen: str | Sequence[str]) -> list[str]:
    labels = [chosen] if isinstance(chosen, str) else chosen
    choices = [
        f'    <choice label="{escape(option.label)}">{escape(option.description, quote=False)}'
        "</choice>"
        for option in question.options
        if option.label in labels
    ]
    text = f"    <question>{escape(question.text, quote=False)}</question>"
    return [f'  <answer header="{escape(question.header)}">', text, *choices, "  </answer>"]


def _whole_block(text: str) -> str:
    """Returns the reply, which has to be one block from its first to its last character."""
    block = text.strip()
    if len(block) > LONGEST_BLOCK:
        raise ValueError(
            f"it has {len(block):,} characters; a block may have {LONGEST_BLOCK:,}, and nothing "
            "else may be in the reply"
        )
    if not block.startswith(f"<{TAG}>"):
        raise ValueError(f"a reply that asks begins with <{TAG}>, with no text or fence before it")
    if f"</{TAG}>" not in block:
        raise ValueError(f"it was cut off: </{TAG}> is missing")
    if not block.endswith(f"</{TAG}>"):
        raise ValueError(f"a reply that asks ends with </{TAG}>, with no text or fence after it")
    if len(_TAG.findall(block)) > 2:
        raise ValueError(f"it has more than one <{TAG}>; put all questions into one block")
    return block


@dataclass
class _Element:
    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: list[_Element] = field(default_factory=list)
    text: str = ""

    def start(self, name: str, attributes: Mapping[str, str]) -> _Element:
        """Adds an element that begins inside this one; refuses one that does not belong here."""
        where = f"<{self.name}>" if self.name else "the reply"
        if name not in _CHILDREN[self.name]:
            raise ValueError(f"{where} contains <{name:.40}>, which does not belong there")
        unknown = [each for each in attributes if each not in _ATTRIBUTES.get(name, ())]
        if unknown:
            raise ValueError(f"<{name}> has the unknown attribute {unknown[0]:.40}")
        child = _Element(name, attributes)
        self.children.append(child)
        return child

    def add_text(self, text: str) -> None:
        """Adds text; refuses it between elements."""
        if _CHILDREN[self.name] and text.strip():
            raise ValueError(
                f"<{self.name}> contains text outside its elements: {text.strip():.40}"
            )
        self.text += text


def _parse(block: str, document: _Element) -> None:
    """Adds the elements of a block to a document."""
    opened = [document]

    def add_text(text: str) -> None:
        opened[-1].add_text(text)

    parser = expat.ParserCreate()
    # Without a document type there are no entities but the five of XML, so nothing can expand.
    parser.StartDoctypeDeclHandler = _refuse("a document type")
    parser.ProcessingInstructionHandler = _refuse("a processing instruction")
    parser.StartCdataSectionHandler = _refuse("a CDATA section")
    parser.CommentHandler = _refuse("a comment")
    parser.StartElementHandler = lambda name, found: opened.append(opened[-1].start(name, found))
    parser.EndElementHandler = lambda _name: opened.pop()
    parser.CharacterDataHandler = add_text
    try:
        parser.Parse(block, True)
    except expat.ExpatError as error:
        raise ValueError(f"it is not well-formed XML: {error}") from error
    except UnicodeEncodeError as error:
        raise ValueError("it contains characters that are not Unicode text") from error


def _refuse(what: str) -> Callable[..., None]:
    def handler(*_details: Any) -> None:
        raise ValueError(f"it contains {what}; write plain elements and text")

    return handler


def _question(element: _Element, number: int) -> UserQuestion:
    """Returns a question; raises `ValueError` or `UsageError` if it is not within the limits."""
    name = f"question {number}"
    header = element.attributes.get("header", "").strip()
    if not 1 <= len(header) <= LONGEST_HEADER:
        raise ValueError(
            f"{name} has a header of {len(header)} characters; give it 1 to {LONGEST_HEADER}"
        )
    several = element.attributes.get("multi_select", "false")
    if several not in ("true", "false"):
        raise ValueError(f'multi_select of {name} is "true" or "false", not {several!r:.40}')
    texts = [each.text.strip() for each in element.children if each.name == "text"]
    if len(texts) != 1 or not texts[0]:
        raise ValueError(f"{name} needs one <text> that is not empty")
    options = [each for each in element.children if each.name == "option"]
    if not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        raise ValueError(
            f"{name} has {len(options)} options; give it {FEWEST_OPTIONS} or {MOST_OPTIONS}"
        )
    return UserQuestion(header, texts[0], tuple(map(_option, options)), several == "true")


def _option(element: _Element) -> Option:
    label = element.attributes.get("label", "").strip()
    return Option(label, description=" ".join(element.text.split()))
