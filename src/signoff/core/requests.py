"""What a run can ask of a human, and what comes back.

A manual paste, a question, an approval and a choice are the same thing in different forms; all
of them are in one inbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Any, assert_never

from signoff.core.errors import InvalidAnswer, UsageError
from signoff.core.questions import (
    Option,
    UserQuestion,
    check_answers,
    check_headers,
    format_answer,
    one_of,
    questions_of,
)

# Which answers must come with proof that a human was present.
#
# A request says so in its form, so the digest of what was shown covers it. What counts as proof,
# and how it is checked, is not decided here.


PRESENCE, APPROVES = "presence", "approves"
"""The keys of a form: whether presence is required, and the options that approve something."""


def needs_presence(form: Mapping[str, Any], value: Any) -> bool:
    """Tells whether an answer approves something and so needs proof of presence.

    Turning something down never does: a user who may answer may also stop a run. If a request does
    not say which of its options approve, all of them count as approval.
    """
    if not form.get(PRESENCE):
        return False
    labels = form.get(APPROVES)
    return value is not False if labels is None else value in labels


def refuse_approval_by_default(form: Mapping[str, Any]) -> None:
    """Raises `UsageError` if a deadline would approve what only a human who is present may."""
    if needs_presence(form, form.get("default")):
        raise UsageError(
            f"the default {form.get('default')!r} would approve without a signature when the "
            "deadline has passed; where presence is required, the default must reject"
        )


RETRY = "retry"
"""The option that repeats what failed, wherever a human is asked about a failure."""

AT_DEADLINE = "deadline passed"
"""The comment of an answer that the deadline gave in place of a human."""


class AnswerForm(Enum):
    """What an answer consists of; this is all that a surface needs to know about a request."""

    DECISION = "decision"
    """Yes or no to exactly what was shown."""
    PICK = "pick"
    """One of several options."""
    PICKS = "picks"
    """Options for each of one or more questions, by their headers."""
    TEXT = "text"
    """A short text."""
    WORK = "work"
    """What an agent would have replied: a long text, or JSON for a schema."""


class RequestKind(StrEnum):
    """What a request asks for.

    A new kind is a line here, its form of answer, and a function below that builds it. Inbox,
    terminal and run directory branch on the form alone.
    """

    QUESTION = "question"
    APPROVAL = "approval"
    CHOICE = "choice"
    QUESTIONS = "questions"
    """Questions with options, asked together."""
    RESPONSE = "response"
    """The work of an agent, done by a human or an outside worker."""

    @property
    def answer_form(self) -> AnswerForm:
        """What its answers consist of."""
        return _ANSWER_FORMS[self]

    @property
    def word(self) -> str:
        """What surfaces call it: the word for what the human does, where that is another one."""
        return _WORDS.get(self, self.value)


_ANSWER_FORMS: Mapping[RequestKind, AnswerForm] = {
    RequestKind.QUESTION: AnswerForm.TEXT,
    RequestKind.APPROVAL: AnswerForm.DECISION,
    RequestKind.CHOICE: AnswerForm.PICK,
    RequestKind.QUESTIONS: AnswerForm.PICKS,
    RequestKind.RESPONSE: AnswerForm.WORK,
}
_WORDS = {RequestKind.CHOICE: "decision", RequestKind.RESPONSE: "manual work"}


class ItemState(StrEnum):
    """How far a request in the inbox has come."""

    OPEN = "open"
    ANSWERED = "answered"
    USED = "used"
    """The run has continued with the answer."""
    WITHDRAWN = "withdrawn"


class Edits(StrEnum):
    """What counts when the file of an approval is changed before it is approved."""

    REFUSE = "refuse"
    """Only what was shown can be approved."""
    ACCEPT = "accept"
    """The approver may edit or create the file; the text found at the approval counts."""


class AnswerableBy(StrEnum):
    """Who may answer a request."""

    HUMAN = "human"
    AGENT = "agent"
    """A human, or an agent that drives the run from outside, such as a client of the MCP server."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to a human, built by one of the functions below."""

    kind: RequestKind
    prompt: str
    """What the human reads."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """What the human sees along with the prompt; the answer is bound to its digest."""
    deadline: timedelta | None = None
    """How long to wait before the default is taken as the answer."""
    default: Any = None
    """The answer taken at the deadline; a deadline needs one."""
    question_id: str = ""
    """A name of the author's for this request, for answers by file."""
    options: tuple[Option, ...] = ()
    """What there is to choose from; empty for anything but a choice."""
    questions: tuple[UserQuestion, ...] = ()
    """What is asked, if it is several questions or one with a header."""
    path: str = ""
    """The file in the run directory that an approval is about."""
    edits: Edits = Edits.REFUSE
    """Whether the approver may edit that file first."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema that a response must match."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the prompt of a response says in words, as plain values."""
    answerable_by: AnswerableBy = AnswerableBy.HUMAN
    """Whether an outside agent may answer as well; never for an approval."""
    presence: bool = False
    """Whether approving it needs the signature of a passkey."""
    approves: tuple[str, ...] = ()
    """The options of a choice that approve what is shown; the others need no signature."""

    def __post_init__(self) -> None:
        """Raises `UsageError` for a deadline or a default that cannot work."""
        # A request is built while a handler runs, long before anybody answers. What could never be
        # answered, or would approve by itself, has to fail here and not at the deadline.
        self._check_answerable_by()
        deadline: Any = self.deadline
        valid = isinstance(deadline, timedelta) and deadline > timedelta(0)
        if deadline is not None and not valid:
            raise UsageError(
                "deadline= is how long a human has to answer: a timedelta of more than 0, such "
                f"as timedelta(days=2), not {deadline!r}"
            )
        if self.presence and self.kind.answer_form not in (AnswerForm.DECISION, AnswerForm.PICK):
            raise UsageError("presence= is for approvals and choices; nothing else approves")
        if self.default is not None:
            object.__setattr__(self, "default", self._checked_default())
        elif self.deadline is not None:
            raise UsageError(
                "a deadline needs a default=, the answer that counts when it has passed"
            )
        if self.presence and self.default is not None:
            refuse_approval_by_default(self.to_json())

    def _check_answerable_by(self) -> None:
        if self.answerable_by not in tuple(AnswerableBy):
            names = " or ".join(repr(each.value) for each in AnswerableBy)
            raise UsageError(f"answerable_by= must be {names}, not {self.answerable_by!r}")
        object.__setattr__(self, "answerable_by", AnswerableBy(self.answerable_by))
        closed = self.kind.answer_form in (AnswerForm.DECISION, AnswerForm.WORK)
        if closed and self.answerable_by is AnswerableBy.AGENT:
            raise UsageError(
                f"answerable_by= must be 'human' for a request of kind {self.kind.value!r}: "
                "agents answer questions and choices only"
            )

    def _checked_default(self) -> Any:
        """Returns the default as the handler gets it; it must be what a human could answer."""
        if self.edits is Edits.ACCEPT and self.default is True:
            raise UsageError("default= must be False with edits='accept': a human edits a file")
        if self.default == "" and self.kind.answer_form is AnswerForm.TEXT:
            return ""
        try:
            answer = check_answer(self.to_json(), self.default, AT_DEADLINE)
            if self.schema:
                json.loads(answer)
        except (InvalidAnswer, ValueError) as error:
            raise UsageError(f"default={self.default!r:.80} cannot be taken: {error}") from error
        return answer

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the options."""
        return tuple(option.label for option in self.options)

    def to_json(self) -> dict[str, Any]:
        """Returns the form as it is stored in the inbox; it identifies the request on replay."""
        form: dict[str, Any] = {"kind": self.kind.value, "prompt": self.prompt}
        if self.kind.answer_form in (AnswerForm.TEXT, AnswerForm.PICK):
            form["options"] = [option.to_json() for option in self.options]
        if self.deadline is not None:
            form["deadline_seconds"] = self.deadline.total_seconds()
            form["default"] = self.default
        # Parts that are empty are left out: the form identifies the request on replay, so a part
        # that is added in a later version must not change the requests that do without it.
        parts = {
            "questions": [question.to_json() for question in self.questions],
            "shown": dict(self.shown),
            "schema": dict(self.schema or {}),
            "about": dict(self.about),
            "approves": list(self.approves),
            "presence": self.presence,
            "question_id": self.question_id,
            "path": self.path,
            "edits": self.edits.value if self.edits is Edits.ACCEPT else "",
            "answerable_by": "agent" if self.answerable_by is AnswerableBy.AGENT else "",
        }
        return form | {name: value for name, value in parts.items() if value}


# The functions below are named like the types they seem to be: that is how handlers read best.


def Question(prompt: str, options: Sequence[str] = (), **common: Any) -> Request:  # noqa: N802
    """Asks for a text; with options, for exactly one of them."""
    if options:
        return Choice(prompt, [str(option) for option in options], **common)
    return Request(kind=RequestKind.QUESTION, prompt=prompt, **common)


def Choice(prompt: str, options: Sequence[Option | str], **common: Any) -> Request:  # noqa: N802
    """Asks for one of several options."""
    listed = tuple(o if isinstance(o, Option) else Option(o) for o in options)
    if not listed or len({option.label for option in listed}) != len(listed):
        raise ValueError("a choice needs options, each with its own label")
    return Request(kind=RequestKind.CHOICE, prompt=prompt, options=listed, **common)


def Questions(  # noqa: N802
    prompt: str, questions: Sequence[UserQuestion], **common: Any
) -> Request:
    """Asks several questions at once; the answer has a label, or a list of them, by header."""
    check_headers(questions)
    return Request(kind=RequestKind.QUESTIONS, prompt=prompt, questions=tuple(questions), **common)


def Approval(  # noqa: N802
    prompt: str, content: Any = None, *, path: str = "", edits: str = Edits.REFUSE, **common: Any
) -> Request:
    """Asks for a yes or no to exactly this content.

    With `path`, the content is also in that file of the run directory. The approval is valid
    for the file as it was shown: if it changes before the approval is given, or before the run
    continues with it, the approval is refused as stale and the file has to be approved again.

    With `edits="accept"`, the approver may edit the file first, or create it. The text found when
    the approval is given is recorded and is the `content` of the answer; later edits don't count.

    With `presence=True`, the approval needs the signature of a passkey, which only the web page can
    ask for; rejecting does not.
    """
    if edits not in tuple(Edits):
        raise UsageError(f"edits= must be {' or '.join(map(repr, map(str, Edits)))}, not {edits!r}")
    if edits == Edits.ACCEPT and not path:
        raise UsageError("edits='accept' needs path=, the file that the approver may edit")
    return Request(
        kind=RequestKind.APPROVAL,
        prompt=prompt,
        shown={"content": content},
        path=path,
        edits=Edits(edits),
        **common,
    )


def Response(prompt: str, schema: Mapping[str, Any] | None = None, **common: Any) -> Request:  # noqa: N802
    """Asks a human to do the work of an agent: the prompt goes out, a text comes back.

    `about=` has in plain values what the prompt says in words.
    """
    return Request(kind=RequestKind.RESPONSE, prompt=prompt, schema=schema, **common)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a human answered, or the default that was taken at the deadline."""

    value: Any
    """The text, the chosen label, True/False for an approval, or what was chosen by header."""
    text: str = ""
    """What the human wrote along with a choice or an approval."""
    by: str = ""
    """Who answered; `deadline` if the default was taken."""
    at: float = 0.0
    """When, in seconds since 1970."""
    parsed: Any = None
    """The parsed value of a response that was requested with a schema."""
    failed: bool = False
    """Whether the work failed; the value is the reason then."""
    content: str | None = None
    """The text of the file that was approved with `edits="accept"`."""
    content_digest: str = ""
    """The sha256 of that file."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What the surface on which the answer was given added to it."""
    presence: Mapping[str, Any] = field(default_factory=dict)
    """The signature of the passkey that approved it, where the request required presence."""

    @property
    def approved(self) -> bool:
        """Whether this is a yes to an approval; any other answer is not."""
        return self.value is True


def default_answer(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the answer that a request gets at its deadline, in its stored form."""
    value = form.get("default")
    answer = {"value": value, "text": AT_DEADLINE}
    if form.get("schema") and isinstance(value, str):
        answer["parsed"] = json.loads(value)
    return answer


def is_open_to_agents(form: Mapping[str, Any]) -> bool:
    """Tells whether the workflow lets an outside agent answer a request."""
    # The kind decides before the field does: a stored form that was tampered with opens no
    # approval.
    decision = RequestKind(form["kind"]).answer_form is AnswerForm.DECISION
    return not decision and form.get("answerable_by") == AnswerableBy.AGENT


def options_of(form: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns what can be chosen; empty if it is any text, or a label for each question."""
    questions = form.get("questions") or []
    return list(form.get("options") or (questions[0]["options"] if len(questions) == 1 else []))


def describe_default(form: Mapping[str, Any]) -> str:
    """Returns what happens to a request at its deadline."""
    default = form.get("default")
    if RequestKind(form["kind"]).answer_form is AnswerForm.DECISION:
        return f"it counts as {'approved' if default is True else 'rejected'}"
    return f"{format_answer(default)!r} is taken"


def check_answer(form: Mapping[str, Any], value: Any, text: str = "") -> Any:
    """Returns the answer in its stored form, or raises `InvalidAnswer` naming what would fit."""
    match RequestKind(form["kind"]).answer_form:
        case AnswerForm.PICK:
            return one_of(form["options"], value, text)
        case AnswerForm.PICKS:
            return check_answers(questions_of(form), value, text)
        case AnswerForm.DECISION:
            if not isinstance(value, bool):
                raise InvalidAnswer("this waits for an approval: approve or reject it")
            return value
        case AnswerForm.TEXT | AnswerForm.WORK:
            if not isinstance(value, str) or not value.strip():
                raise InvalidAnswer("the answer must be a text, and must not be empty")
            return value
        case other:
            assert_never(other)


# Which requests are about an approval, what they are called, and when they need a signature.


SIGN_OFF = "sign_off"
"""The id of the question at a sign-off, and the constraint of findings that are reported there."""


def is_approval(form: Mapping[str, Any]) -> bool:
    """Tells whether an answer to a request can approve something."""
    return RequestKind(form["kind"]).answer_form is AnswerForm.DECISION or APPROVES in form


def request_word(form: Mapping[str, Any]) -> str:
    """Returns what a request is to a human, such as `sign-off`; its kind is for programs."""
    if form.get("question_id") == SIGN_OFF:
        return "sign-off"
    return RequestKind(form["kind"]).word


def approves(form: Mapping[str, Any], value: Any) -> bool:
    """Tells whether an answer approves something, whether or not that had to be signed."""
    return needs_presence({**form, PRESENCE: form.get(PRESENCE) or is_approval(form)}, value)


def require_presence(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a form with presence required, if it is about an approval."""
    if not is_approval(form):
        return dict(form)
    required = {**form, PRESENCE: True}
    if "deadline_seconds" in form:
        refuse_approval_by_default(required)
    return required
