"""Records what people answer. Every surface goes through `record_answer`, and nothing else.

An answer is checked against its request, bound to the digest of what was shown, and
stored once with who gave it, when and why.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, assert_never

from signoff.app.project import Project
from signoff.core.codec import decode
from signoff.core.digest import SHORT
from signoff.core.requests import ItemState, RequestKind, check_answer, describe_default
from signoff.errors import AgentBadOutput, InvalidAnswer, StaleApproval, UnsafePath, UsageError
from signoff.remedies import AnswerRequest, Resume, ShowInbox
from signoff.runtime.run_inbox import ApprovedFiles
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.files import RunFiles, file_path

LONGEST_NUMBER = 18
"""Digits of a request's number; more do not fit into the database."""

SHORTEST_DIGEST = 6
"""Characters a person has to give of a digest; fewer could mean another content."""


@dataclass(frozen=True)
class Given:
    """What a person says, and who they are."""

    value: Any
    text: str = ""
    """Why, or what else they wrote."""
    by: str = ""
    """Empty means whoever is logged in."""
    digest: str | None = None
    """Of what they were shown, or its beginning; None means what the inbox shows now."""
    failed: bool = False
    """Whether work is given up; the value says why."""
    at: float | None = None
    """When they said it, in seconds since 1970; None means now."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What a worker hands in beside the result, by the names the notation knows."""


def record_answer(project: Project, number: int, given: Given) -> InboxItem:
    """Stores an answer to one request; raises `InvalidAnswer` or `StaleApproval` if it may not."""
    item = project.store.item(number)
    form = form_of(project, item)
    _check_open(item)
    at = project.clock.now() if given.at is None else given.at
    _check_in_time(item, form, at)
    _check_digest(item, given.digest)
    value = check_answer(form, given.value, given.text)
    if value is True:
        _check_file(project, item, form)
    read = {"failed": True} if given.failed else _parsed(form, value, given.beside)
    stored = project.secrets.hide_in({"value": value, "text": given.text, **read})
    by = given.by or current_user()
    return project.store.answer(number, json.dumps(stored), by, at, item.digest)


def approve(project: Project, number: int, given: Given) -> InboxItem:
    """Says yes to an approval, or chooses `approve` at a gate that offers it."""
    return _decide(project, number, given, yes=True)


def reject(project: Project, number: int, given: Given) -> InboxItem:
    """Says no to an approval, or chooses `reject` at a gate that offers it."""
    return _decide(project, number, given, yes=False)


def request_number(word: str) -> int | None:
    """Returns the number of a request, such as 7 or #7; None for any other word."""
    digits = word.removeprefix("#")
    return int(digits) if digits.isdecimal() and len(digits) <= LONGEST_NUMBER else None


def find_item(project: Project, where: str | None = None) -> InboxItem:
    """Returns the request a person means: by number, by run, or the latest run's only one."""
    number = request_number(where or "")
    if number is not None:
        return project.store.item(number)
    row = project.run(where)
    match project.store.items(row.name):
        case [item]:
            return item
        case []:
            raise UsageError(f"run {row.name!r} has no pending requests{_elsewhere(project)}")
        case several:
            listed = ", ".join(f"#{item.id} {_named(project, item)!r}" for item in several[:8])
            raise UsageError(
                f"run {row.name!r} has {len(several)} pending requests; name one: {listed}"
            )


def form_of(project: Project, item: InboxItem) -> dict[str, Any]:
    """Returns the whole request as it was made."""
    form: dict[str, Any] = decode(item.form, project.store.blob)
    return form


def title_of(form: dict[str, Any]) -> str:
    """Returns what work is about, in a few words; empty where nobody said."""
    return str((form.get("about") or {}).get("title", ""))


def current_user() -> str:
    """Names whoever is logged in."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run under a number that has no name.
        return "unknown user"


def _named(project: Project, item: InboxItem) -> str:
    return title_of(form_of(project, item)) or item.prompt[:40]


def _decide(project: Project, number: int, given: Given, *, yes: bool) -> InboxItem:
    item = project.store.item(number)
    _check_open(item)
    verb = "approve" if yes else "reject"
    match item.kind:
        case RequestKind.APPROVAL:
            value: Any = yes
        case RequestKind.CHOICE:
            value = _option(form_of(project, item), verb, number)
        case RequestKind.QUESTION | RequestKind.RESPONSE:
            raise InvalidAnswer(
                f"request #{number} is a {item.kind}, which cannot be approved or rejected",
                remedy=AnswerRequest(number),
            )
        case _:
            assert_never(item.kind)
    return record_answer(project, number, Given(value, given.text, given.by, given.digest))


def _option(form: dict[str, Any], verb: str, number: int) -> str:
    labels = [str(option["label"]) for option in form["options"]]
    for label in labels:
        if label.casefold() == verb:
            return label
    raise InvalidAnswer(
        f"request #{number} has no option {verb!r}", remedy=AnswerRequest(number, tuple(labels))
    )


def _parsed(form: dict[str, Any], value: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the value a response holds; one that does not fit its schema is refused."""
    if not form.get("schema") and not beside:
        return {}
    held = _held(value, form.get("schema"))
    return {"parsed": {"success": True, "result": held, **beside} if beside else held}


def _held(value: Any, schema: Mapping[str, Any] | None) -> Any:
    from signoff.agents.structured import parse_answer

    if not schema:
        try:
            return json.loads(value)
        except ValueError:
            return value
    try:
        return parse_answer(value, schema)
    except AgentBadOutput as error:
        raise InvalidAnswer(str(error)) from error


def _check_open(item: InboxItem) -> None:
    if item.state == ItemState.OPEN:
        return
    by = f" by {item.answered_by}" if item.answered_by else ""
    # Whether the run has read an answer yet makes no difference to a person.
    state = ItemState.ANSWERED if item.state == ItemState.USED else item.state
    raise InvalidAnswer(f"request #{item.id} is no longer open: {state}{by}")


def _check_in_time(item: InboxItem, form: Mapping[str, Any], at: float) -> None:
    """Refuses what comes too late: whoever looked was told what then counts."""
    if item.deadline is None or at < item.deadline:
        return
    passed = datetime.fromtimestamp(item.deadline, UTC)
    raise InvalidAnswer(
        f"the deadline of request #{item.id} passed at {passed:%Y-%m-%d %H:%M:%S} UTC, "
        f"and {describe_default(form)}",
        remedy=Resume(item.run),
    )


def _check_digest(item: InboxItem, digest: str | None) -> None:
    if digest is None:
        return
    if len(digest) < SHORTEST_DIGEST:
        raise InvalidAnswer(f"give at least {SHORTEST_DIGEST} characters of the digest")
    if not item.digest.startswith(digest.lower()):
        raise StaleApproval(
            f"request #{item.id} now shows {item.digest[:SHORT]}, not {digest}",
            remedy=ShowInbox(item.id),
        )


def _check_file(project: Project, item: InboxItem, form: dict[str, Any]) -> None:
    """Refuses to approve a file that is no longer what the request shows."""
    files = ApprovedFiles(project.store, RunFiles(project.home.runs))
    try:
        as_shown = files.unchanged(item.run, form)
    except UnsafePath as error:
        raise StaleApproval(
            f"cannot compare {form['path']} with what was shown: {error}"
        ) from error
    if not as_shown:
        file = file_path(project.folder(item.run), form["path"])
        raise StaleApproval(
            f"{file} is no longer what request #{item.id} shows (it was changed or removed); "
            "restore it, or reject the request so that the run creates it again"
        )


def _elsewhere(project: Project) -> str:
    others = project.store.items()[:8]
    if not others:
        return ""
    listed = ", ".join(f"#{item.id} ({item.run})" for item in others)
    return f"; pending in other runs: {listed}"
