"""What a run can ask of a person, and what comes back.

A manual paste, a question, an approval and a choice are the same thing with
different forms; all of them live in one inbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, ClassVar, assert_never

from signoff.errors import InvalidAnswer, UsageError
from signoff.remedies import PassOption

RETRY = "retry"
"""The option that repeats what failed, wherever a human is asked about a failure."""

AT_DEADLINE = "deadline passed"
"""Stands where a person would have written something."""


class RequestKind(StrEnum):
    """What a request asks for."""

    QUESTION = "question"
    APPROVAL = "approval"
    CHOICE = "choice"
    RESPONSE = "response"
    """The work of an agent, done by a human or an outside worker."""


class ItemState(StrEnum):
    """How far a request in the inbox has come."""

    OPEN = "open"
    ANSWERED = "answered"
    USED = "used"
    """The run has continued with the answer."""
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, kw_only=True)
class Request:
    """The part every request to a person shares."""

    kind: ClassVar[RequestKind]
    prompt: str
    """What the person reads."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """What the person is shown beside the prompt; the answer is bound to its digest."""
    deadline: timedelta | None = None
    """How long to wait before the default action is taken; more than no time."""
    default: Any = None
    """The answer taken at the deadline; a deadline needs one."""
    question_id: str = ""
    """A name of the author's for this request, for answers by file."""

    def __post_init__(self) -> None:
        """Raises `UsageError` for a deadline or a default that could not be kept to."""
        if self.deadline is not None and not isinstance(self.deadline, timedelta):
            raise UsageError(
                f"deadline= takes a timedelta, such as timedelta(days=2), not {self.deadline!r}"
            )
        if self.deadline is not None and self.deadline <= timedelta(0):
            raise UsageError(
                f"deadline= is how long a person has, and {self.deadline!r} leaves no time; "
                "give a longer one, such as timedelta(days=2), or do not ask"
            )
        if self.default is not None:
            object.__setattr__(self, "default", self._fitting(self.default))
        elif self.deadline is not None:
            raise UsageError(
                f"a deadline needs a default=, the answer that counts when it has passed: "
                f"{self._wanted()}"
            )

    def _fitting(self, default: Any) -> Any:
        """Returns the default as the handler gets it; it has to be what a person could answer."""
        if not isinstance(default, str):
            raise UsageError(f"the default of a {self.kind} is {self._wanted()}, not {default!r}")
        return default

    def _wanted(self) -> str:
        return "a text"

    @property
    def labels(self) -> tuple[str, ...]:
        """What there is to choose from; empty for anything but a choice."""
        return ()

    def to_json(self) -> dict[str, Any]:
        """Returns the form as it is stored in the inbox."""
        form: dict[str, Any] = {"kind": self.kind.value, "prompt": self.prompt}
        if self.shown:
            form["shown"] = dict(self.shown)
        if self.deadline is not None:
            form["deadline_seconds"] = self.deadline.total_seconds()
            form["default"] = self.default
        if self.question_id:
            form["question_id"] = self.question_id
        return form


@dataclass(frozen=True, kw_only=True)
class _Question(Request):
    kind: ClassVar[RequestKind] = RequestKind.QUESTION
    options: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "options": list(self.options)}


def Question(prompt: str, options: Sequence[str] = (), **common: Any) -> Request:  # noqa: N802  # reads as the type it makes
    """Asks for a text; with options, for exactly one of them."""
    if options:
        return Choice(prompt, [Option(str(o)) for o in options], **common)
    return _Question(prompt=prompt, **common)


@dataclass(frozen=True)
class Option:
    """One thing a person can choose."""

    label: str
    requires_input: bool = False
    """Whether the person must also write something."""


@dataclass(frozen=True, kw_only=True)
class _Choice(Request):
    kind: ClassVar[RequestKind] = RequestKind.CHOICE
    options: tuple[Option, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(option.label for option in self.options)

    def to_json(self) -> dict[str, Any]:
        options = [{"label": o.label, "requires_input": o.requires_input} for o in self.options]
        return {**super().to_json(), "options": options}

    def _fitting(self, default: Any) -> Any:
        listed = [{"label": option.label} for option in self.options]
        try:
            return _one_of(listed, default, AT_DEADLINE)
        except InvalidAnswer as error:
            raise UsageError(f"the default {error}") from error

    def _wanted(self) -> str:
        return f"one of {', '.join(self.labels)}"


def Choice(prompt: str, options: Sequence[Option | str], **common: Any) -> Request:  # noqa: N802  # reads as the type it makes
    """Asks for one of several options."""
    listed = tuple(o if isinstance(o, Option) else Option(o) for o in options)
    labels = [o.label for o in listed]
    if not labels or len(set(labels)) != len(labels):
        raise ValueError("a choice needs options with labels of their own")
    return _Choice(prompt=prompt, options=listed, **common)


@dataclass(frozen=True, kw_only=True)
class _Approval(Request):
    kind: ClassVar[RequestKind] = RequestKind.APPROVAL
    path: str = ""

    def to_json(self) -> dict[str, Any]:
        form = super().to_json()
        return {**form, "path": self.path} if self.path else form

    def _fitting(self, default: Any) -> Any:
        if not isinstance(default, bool):
            raise UsageError(f"the default of an approval is {self._wanted()}, not {default!r}")
        return default

    def _wanted(self) -> str:
        return "False (rejected) or True (approved)"


def Approval(prompt: str, content: Any = None, *, path: str = "", **common: Any) -> Request:  # noqa: N802  # reads as the type it makes
    """Asks for a yes or no to exactly this content.

    With `path`, the content also stands in that file of the run directory. The approval
    counts for the file as it was shown: changed before the approval is given, or before the
    run goes on with it, the file is refused as stale and has to be approved again.
    """
    return _Approval(prompt=prompt, shown={"content": content}, path=path, **common)


@dataclass(frozen=True, kw_only=True)
class _Response(Request):
    kind: ClassVar[RequestKind] = RequestKind.RESPONSE
    schema: Mapping[str, Any] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        form = super().to_json()
        if self.schema:
            form["schema"] = dict(self.schema)
        return {**form, "about": dict(self.about)} if self.about else form

    def _fitting(self, default: Any) -> Any:
        text = super()._fitting(default)
        if self.schema:
            try:
                json.loads(text)
            except ValueError as error:
                raise UsageError(f"the default must be {self._wanted()}: {error}") from error
        return text

    def _wanted(self) -> str:
        return "a text that holds JSON, as the schema asks" if self.schema else "a text"


def Response(prompt: str, schema: Mapping[str, Any] | None = None, **common: Any) -> Request:  # noqa: N802  # reads as the type it makes
    """Asks a person to do the work of an agent: the prompt goes out, a text comes back.

    `about` says in plain values what the prompt says in words.
    """
    return _Response(prompt=prompt, schema=schema, **common)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from a person, or from the deadline."""

    value: Any
    """The text, the chosen label, or True/False for an approval."""
    text: str = ""
    """What the person wrote beside a choice or an approval."""
    by: str = ""
    """Who answered; `deadline` when nobody did."""
    at: float = 0.0
    """When, in seconds since 1970."""
    parsed: Any = None
    """The value a response holds, when it was asked for by schema."""
    failed: bool = False
    """Whether the work was given up; the value says why."""

    @property
    def approved(self) -> bool:
        """Whether this is a yes to an approval; any other answer is not."""
        return self.value is True


def default_answer(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what counts as the answer to a request, in its stored form, once it is too late."""
    value = form.get("default")
    answer = {"value": value, "text": AT_DEADLINE}
    if form.get("schema") and isinstance(value, str):
        answer["parsed"] = json.loads(value)
    return answer


def options_of(form: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns what can be chosen; empty when anything can be answered."""
    listed = form.get("options") or []
    return [o if isinstance(o, dict) else {"label": str(o)} for o in listed]


def describe_default(form: Mapping[str, Any]) -> str:
    """Says what the deadline of a request means for it."""
    default = form.get("default")
    if form["kind"] == RequestKind.APPROVAL:
        return f"it counts as {'approved' if default is True else 'rejected'}"
    return f"{default!r} is taken"


def check_answer(form: Mapping[str, Any], value: Any, text: str = "") -> Any:
    """Returns the answer in its stored form, or raises `InvalidAnswer` naming what would fit."""
    kind = RequestKind(form["kind"])
    match kind:
        case RequestKind.CHOICE:
            return _one_of(form["options"], value, text)
        case RequestKind.APPROVAL:
            if not isinstance(value, bool):
                raise InvalidAnswer("this waits for an approval: approve or reject it")
            return value
        case RequestKind.QUESTION | RequestKind.RESPONSE:
            if not isinstance(value, str) or not value.strip():
                raise InvalidAnswer("the answer must not be empty")
            return value
        case _:
            assert_never(kind)


def _one_of(options: Sequence[Mapping[str, Any]], value: Any, text: str) -> str:
    labels = [str(o["label"]) for o in options]
    wanted = str(value).strip()
    numbered = {str(number): label for number, label in enumerate(labels, 1)}
    if wanted not in labels:
        wanted = numbered.get(wanted, wanted)
    folded = [label for label in labels if label.casefold() == wanted.casefold()]
    if wanted not in labels and len(folded) == 1:
        wanted = folded[0]
    if wanted not in labels:
        raise InvalidAnswer(f"{value!r} is not an option; choose one of: {', '.join(labels)}")
    if options[labels.index(wanted)].get("requires_input") and not text.strip():
        raise InvalidAnswer(
            f"option {wanted!r} needs an explanation", remedy=PassOption("text", "'...'")
        )
    return wanted
