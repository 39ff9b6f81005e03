"""Questions with options, several of which can be asked at once; checks what was chosen.

Each question has a short header, under which it is answered: `Storage=SQLite` on a line of its
own, or `{"Storage": "SQLite"}`. Someone who is asked a single question may leave out the header.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from signoff.core.errors import InvalidAnswer, UsageError
from signoff.core.remedies import PassOption, Remedy

SEPARATORS = "=:"
"""What may follow a header where a question is answered in a line of text."""


@dataclass(frozen=True)
class Option:
    """One thing a human can choose."""

    label: str
    requires_input: bool = False
    """Whether the human must also write something."""
    description: str = ""
    """What choosing it means."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored."""
        return asdict(self)


@dataclass(frozen=True)
class UserQuestion:
    """One of the questions of a request, with the options to choose from."""

    header: str
    """A short name, under which it is answered."""
    text: str
    options: tuple[Option, ...]
    multi_select: bool = False
    """Whether several options may be chosen; at least one has to be."""

    def __post_init__(self) -> None:
        """Raises `UsageError` if it could not be asked, or answered by its header and labels."""
        names = [self.header, *(option.label for option in self.options)]
        if any(name != name.strip() or not name.isprintable() or not name for name in names):
            raise UsageError("headers and labels are texts on one line, of visible characters")
        if not self.text.strip():
            raise UsageError(f"the question {self.header!r} has no text")
        labels = {option.label.casefold() for option in self.options}
        if not labels or len(labels) < len(self.options):
            raise UsageError(f"the question {self.header!r} needs options with different labels")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its options."""
        return tuple(option.label for option in self.options)

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored, without what is empty."""
        options = [{n: v for n, v in each.to_json().items() if v} for each in self.options]
        stored: dict[str, Any] = {"header": self.header, "text": self.text, "options": options}
        return stored | ({"multi_select": True} if self.multi_select else {})

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> UserQuestion:
        """Reads what `to_json` returned."""
        return cls(**{**stored, "options": tuple(Option(**each) for each in stored["options"])})


def questions_of(form: Mapping[str, Any]) -> list[UserQuestion]:
    """Returns the questions of a request in its stored form; empty if it is of another kind."""
    return [UserQuestion.from_json(each) for each in form.get("questions") or ()]


def check_headers(questions: Sequence[UserQuestion]) -> None:
    """Raises `UsageError` if there is no question, or if a header does not identify one."""
    headers = {question.header.casefold() for question in questions}
    if not headers or len(headers) < len(questions):
        raise UsageError("a request needs questions with different headers")


def check_answers(
    questions: Sequence[UserQuestion], value: Any, text: str = ""
) -> dict[str, str | list[str]]:
    """Returns a label for each header, or a list of labels where several may be chosen.

    Raises `InvalidAnswer` with everything that is wrong, and the valid headers and labels.
    """
    problems: list[str] = []
    remedies: list[Remedy] = []
    entries: dict[str, list[str]] = {}
    for name, words in _entries(questions, value):
        question = _find(questions, name)
        if question is None:
            headers = ", ".join(each.header for each in questions)
            problems.append(f"unknown question {name!r}; the questions are: {headers}")
        else:
            entries.setdefault(question.header, []).extend(words)
    answers: dict[str, str | list[str]] = {}
    for question in questions:
        try:
            answers[question.header] = _choice(question, entries.get(question.header, []), text)
        except InvalidAnswer as error:
            problems.append(f"{question.header}: {error}")
            remedies += [each for each in error.remedies if each not in remedies]
    if problems:
        raise InvalidAnswer("; ".join(problems), remedy=tuple(remedies))
    return answers


def one_of(options: Sequence[Mapping[str, Any]], value: Any, text: str) -> str:
    """Returns the label that was chosen; raises `InvalidAnswer` naming all of them."""
    labels = [str(o["label"]) for o in options]
    label = str(value).strip()
    if label not in labels:
        # A human may also type an option's number, or its label in another case.
        numbered = {str(number): each for number, each in enumerate(labels, 1)}
        folded = [each for each in labels if each.casefold() == label.casefold()]
        label = numbered.get(label, folded[0] if len(folded) == 1 else label)
    if label not in labels:
        raise InvalidAnswer(f"{value!r} is not an option; choose one of: {', '.join(labels)}")
    if options[labels.index(label)].get("requires_input") and not text.strip():
        raise InvalidAnswer(
            f"option {label!r} needs an explanation", remedy=PassOption("text", "'...'")
        )
    return label


def format_answer(value: Any) -> str:
    """Returns the value of an answer as a text, with the answers to several questions by header."""
    if not isinstance(value, Mapping):
        return str(value)
    chosen = {name: [each] if isinstance(each, str) else each for name, each in value.items()}
    return "; ".join(f"{name}={', '.join(labels)}" for name, labels in chosen.items())


def _choice(question: UserQuestion, words: Sequence[str], text: str) -> str | list[str]:
    options = [option.to_json() for option in question.options]
    if not words:
        raise InvalidAnswer(f"not answered; choose one of: {', '.join(question.labels)}")
    if not question.multi_select:
        if len(words) > 1:
            raise InvalidAnswer(f"choose only one of: {', '.join(question.labels)}")
        return one_of(options, words[0], text)
    chosen = {label for word in words for label in _labels(options, word, text)}
    return [label for label in question.labels if label in chosen]


def _labels(options: Sequence[Mapping[str, Any]], word: str, text: str) -> list[str]:
    """Returns the labels in a word: it is one of them, or several with commas between them."""
    try:
        return [one_of(options, word, text)]
    except InvalidAnswer:
        if "," not in word:
            raise
        return [one_of(options, each, text) for each in word.split(",")]


def _entries(questions: Sequence[UserQuestion], value: Any) -> Iterator[tuple[str, list[str]]]:
    """Yields the name of each question that an answer is about, and what is chosen."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _object(value)
    if isinstance(value, Mapping):
        for name, chosen in value.items():
            yield str(name), _words(chosen)
        return
    lines = _words(value.splitlines() if isinstance(value, str) else value)
    for line in filter(None, map(str.strip, lines)):
        yield _split(questions, line)


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswer(f"the answer is not JSON: {error}") from error


def _words(chosen: Any) -> list[str]:
    if chosen is None:
        return []
    several = isinstance(chosen, Iterable) and not isinstance(chosen, str | Mapping)
    return [str(each) for each in chosen] if several else [str(chosen)]


def _split(questions: Sequence[UserQuestion], line: str) -> tuple[str, list[str]]:
    # A header or a label may contain a separator, so the known headers are looked for, the longest
    # first, and the only question is given a line that is no other question's.
    for question in sorted(questions, key=lambda each: len(each.header), reverse=True):
        start, rest = line[: len(question.header)], line[len(question.header) :].lstrip()
        if start.casefold() == question.header.casefold() and rest[:1] in SEPARATORS and rest:
            if len(questions) == 1 and line in question.labels:
                break
            return question.header, [rest[1:].strip()]
    if len(questions) == 1:
        return questions[0].header, [line]
    name = min((line.partition(each)[0] for each in SEPARATORS), key=len)
    return name.strip(), [line]


def _find(questions: Sequence[UserQuestion], name: str) -> UserQuestion | None:
    folded = " ".join(name.split()).casefold()
    return next((each for each in questions if each.header.casefold() == folded), None)
