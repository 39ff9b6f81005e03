"""Lists requests and records their answers. Every surface uses `record_answer` and nothing else.

An answer is checked against its request, bound to the digest of what was shown, and
stored once, with its author, time and reason.
"""

from __future__ import annotations

import getpass
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_never

from signoff.app.runs.history import form_of, load_state
from signoff.app.runs.next_commands import answer_commands
from signoff.app.settings.project import WORKER_VARIABLE, Project
from signoff.core import errors as er
from signoff.core import requests as rq
from signoff.core.codec import decode
from signoff.core.digest import SHORT, text_digest
from signoff.core.remedies import AnswerRequest, Resume, ShowInbox
from signoff.runtime.paths import read_text
from signoff.runtime.run_inbox import ApprovedFiles
from signoff.runtime.store_port import InboxItem, InboxLine, RunRow
from signoff.store.run_files import HITL, RunFiles, file_path
from signoff.views.run_directory.answers import FileAnswer, prompt_name

if TYPE_CHECKING:
    from signoff.app.json_documents import LocalRequest, RequestInfo
    from signoff.app.people.passkeys import Proof


LONGEST_NUMBER = 18
"""The most digits of a request's number; more do not fit into the database."""

SHORTEST_DIGEST = 12
"""The fewest characters of a digest that are accepted; fewer could match other content."""


@dataclass(frozen=True)
class AnswerInput:
    """An answer or a submission before it is checked, and who gives it."""

    value: Any
    text: str = ""
    """The reason or comment."""
    by: str = ""
    """The author; empty means the logged-in user."""
    digest: str | None = None
    """The digest of what was shown, or its beginning; None accepts the current content."""
    failed: bool = False
    """Whether a worker reports that the work failed; `value` is the reason."""
    at: float | None = None
    """When it was given, in seconds since 1970; None means now."""
    proof: Proof | None = None
    """What an authenticator returned, where the request requires presence."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a worker's result that are given apart from it, by name."""
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What a worker submits in addition to the result, by the names of the notation's options, or
    what a surface adds to a decision."""


def record_answer(
    project: Project, number: int, answer: AnswerInput, *, work: bool = False
) -> InboxItem:
    """Stores the answer to a request; raises `InvalidAnswer` or `StaleApproval` to refuse it.

    `work` says that it is the work of an external worker, who may submit nothing else.
    """
    if not work:
        refuse_worker(project.worker_token, "answer requests")
    item, by = project.store.item(number), answer.by or current_user()
    at = project.clock.now() if answer.at is None else answer.at
    form = form_of(project, item)
    # Checked here and not by each surface, so that no tool for agents can forget it.
    if project.for_agent and not work and not rq.is_open_to_agents(form):
        raise er.InvalidAnswer(f"only a human can answer request #{number} ({item.kind})")
    stored = _checked_answer(project, item, form, answer, at)
    if rq.needs_presence(form, stored["value"]):
        # Imported here because few requests need it.
        from signoff.app.people.passkeys import prove

        stored["presence"] = prove(project.home.passkeys, item, stored, by, answer.proof)
    return project.store.answer(number, json.dumps(stored), by, at, item.digest)


def answer_to_sign(
    project: Project, number: int, answer: AnswerInput, content: str | None = None
) -> tuple[InboxItem, dict[str, Any]]:
    """Returns a request and an answer to it as they would be stored, for a passkey to sign.

    `content` is the text that the approver has put into the file of the request. Raises what
    `record_answer` would raise.
    """
    item = project.store.item(number)
    form = form_of(project, item)
    edited = form.get("edits") == rq.Edits.ACCEPT and content is not None
    now = project.clock.now()
    stored = _checked_answer(project, item, form, answer, now, with_file=not edited)
    return item, stored | ({"content_digest": text_digest(content or "")} if edited else {})


def _checked_answer(
    project: Project,
    item: InboxItem,
    form: dict[str, Any],
    answer: AnswerInput,
    at: float,
    *,
    with_file: bool = True,
) -> dict[str, Any]:
    """Returns an answer as it is stored; raises if it does not fit its request."""
    _check_open(item)
    _check_in_time(item, form, at)
    _check_digest(item, answer.digest)
    # The form decides what is valid, whichever surface has asked: a page, a file and a command
    # accept the same answers.
    value = rq.check_answer(form, answer.value, answer.text)
    details = {"failed": True} if answer.failed else _details(item, form, value, answer.extras)
    if value is True and with_file:
        details |= _read_file(project, item, form)
    stored: dict[str, Any] = {"value": value, "text": answer.text, **details}
    return dict(project.secrets.hide_in(stored))


def record_file_answers(project: Project, run: str) -> list[str]:
    """Records every usable answer in a run's `hitl/`; returns a warning for each other one.

    A used file is archived, so that it is used once.
    """
    if project.worker_token or project.for_agent:
        # It could have written them itself; they are used when a human resumes the run.
        return []
    directory = project.directory()
    found = directory.read_answers(run)
    warnings = list(found.warnings)
    used: dict[str, FileAnswer] = {}
    for answer in found.answers:
        # The inbox stores the file's token, so a crash before archiving cannot use it twice.
        by = f"{current_user()} ({answer.by})"
        # The answer counts from when the file was written: a deadline may have passed since.
        at = min(answer.file.changed_at, project.clock.now())
        entry = AnswerInput(answer.value, answer.text, by, answer.digest, at=at)
        try:
            record_answer(project, answer.number, entry)
        except (er.InvalidAnswer, er.StaleApproval) as error:
            warnings.append(f"{answer.file.path.name}: {error}")
        else:
            used.setdefault(answer.file.token, answer)
    # Only now: a file that was archived before its answer is stored would be lost with a crash in
    # between.
    for answer in used.values():
        directory.archive(answer)
    return warnings


def request_number(word: str) -> int | None:
    """Parses the number of a request, such as 7 or #7; None for any other text."""
    digits = word.removeprefix("#")
    return int(digits) if digits.isdecimal() and len(digits) <= LONGEST_NUMBER else None


def find_item(project: Project, where: str | None = None) -> InboxItem:
    """Finds a request by its number, or the only pending one of a run or of the latest run."""
    number = request_number(where or "")
    if number is not None:
        return project.store.item(number)
    row = project.run(where)
    match project.store.items(row.name):
        case [item]:
            return item
        case []:
            raise er.UsageError(f"run {row.name!r} has no pending requests", remedy=ShowInbox())
        case several:
            listed = ", ".join(f"#{each.id}" for each in several[:8])
            raise er.UsageError(
                f"run {row.name!r} has {len(several)} pending requests; name one: {listed}",
                remedy=ShowInbox(run=row.name),
            )


def title_of(form: dict[str, Any]) -> str:
    """Returns the title of a request; empty if it has none."""
    return str((form.get("about") or {}).get("title", ""))


def current_user() -> str:
    """Returns the name of the logged-in user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run under a user id that has no name.
        return "unknown user"


def decide(project: Project, number: int, answer: AnswerInput, *, yes: bool) -> InboxItem:
    """Approves or rejects a request; at a gate, chooses the option of that name."""
    refuse_worker(project.worker_token, "approve or reject requests")
    # Checked before the kind of request, or a request that is answered already would get advice on
    # how to answer it.
    item = project.store.item(number)
    _check_open(item)
    verb = "approve" if yes else "reject"
    match item.kind.answer_form:
        case rq.AnswerForm.DECISION:
            value: Any = yes
        case rq.AnswerForm.PICK:
            value = _option(form_of(project, item), verb, number)
        case rq.AnswerForm.TEXT | rq.AnswerForm.WORK | rq.AnswerForm.PICKS:
            raise er.InvalidAnswer(
                f"request #{number} ({item.kind}) cannot be approved or rejected",
                remedy=AnswerRequest(number),
            )
        case other:
            assert_never(other)
    return record_answer(project, number, replace(answer, value=value))


def _option(form: dict[str, Any], verb: str, number: int) -> str:
    labels = [str(option["label"]) for option in form["options"]]
    for label in labels:
        if label.casefold() == verb:
            return label
    raise er.InvalidAnswer(
        f"request #{number} has no option {verb!r}", remedy=AnswerRequest(number, tuple(labels))
    )


def _details(
    item: InboxItem, form: dict[str, Any], value: Any, extras: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns what is stored along with a value: the parsed value of a response, and extras.

    Raises if a response does not match its schema.
    """
    if item.kind.answer_form is not rq.AnswerForm.WORK:
        return {"extras": dict(extras)} if extras else {}
    if not form.get("schema") and not extras:
        return {}
    result = _parse_value(value, form.get("schema"))
    if not extras:
        return {"parsed": result}
    if isinstance(result, dict) and "success" in result:
        # The worker itself reports whether it succeeded, and an option must not change that.
        return {"parsed": {**result, **extras}}
    return {"parsed": {"success": True, "result": result, **extras}}


def _parse_value(value: Any, schema: Mapping[str, Any] | None) -> Any:
    from signoff.agents.answer import parse_answer

    if not schema:
        try:
            return json.loads(value)
        except ValueError:
            return value
    try:
        return parse_answer(value, schema)
    except er.AgentBadOutput as error:
        raise er.InvalidAnswer(str(error)) from error


def _check_open(item: InboxItem) -> None:
    if item.state == rq.ItemState.OPEN:
        return
    by = f" by {item.answered_by}" if item.answered_by else ""
    # For the user, an answer that the run has used is simply answered.
    state = rq.ItemState.ANSWERED if item.state == rq.ItemState.USED else item.state
    raise er.RequestClosed(f"request #{item.id} is no longer open: {state}{by}")


def _check_in_time(item: InboxItem, form: Mapping[str, Any], at: float) -> None:
    """Refuses an answer after the deadline, when the request's default counts."""
    if item.deadline is None or at < item.deadline:
        return
    passed = datetime.fromtimestamp(item.deadline, UTC)
    raise er.RequestClosed(
        f"the deadline of request #{item.id} passed at {passed:%Y-%m-%d %H:%M:%S} UTC, "
        f"and {rq.describe_default(form)}",
        remedy=Resume(item.run),
    )


def _check_digest(item: InboxItem, digest: str | None) -> None:
    if digest is None:
        return
    if len(digest) < SHORTEST_DIGEST:
        raise er.InvalidAnswer(f"give at least {SHORTEST_DIGEST} characters of the digest")
    if not item.digest.startswith(digest.lower()):
        raise er.StaleApproval(
            f"request #{item.id} now shows {item.digest[:SHORT]}, not {digest}",
            remedy=ShowInbox(item.id),
        )


def _read_file(project: Project, item: InboxItem, form: dict[str, Any]) -> dict[str, Any]:
    """Returns the text of the file that is approved, if the approver may have edited it."""
    files = RunFiles(project.home.runs)
    if form.get("edits") != rq.Edits.ACCEPT:
        _check_file(project, files, item, form)
        return {}
    try:
        file = read_text(files, project.secrets, item.run, form["path"])
    except (er.UnsafePath, er.UnreadableFile) as error:
        raise er.InvalidAnswer(f"request #{item.id} cannot be approved: {error}") from error
    if file is None:
        missing = file_path(project.folder(item.run), form["path"])
        raise er.InvalidAnswer(f"{missing} is missing; create it, then approve request #{item.id}")
    return {"content": file.text, "content_digest": file.digest}


def _check_file(project: Project, files: RunFiles, item: InboxItem, form: dict[str, Any]) -> None:
    """Refuses to approve a file that has changed since the request showed it."""
    try:
        as_shown = ApprovedFiles(project.store, files).unchanged(item.run, form)
    except (er.UnsafePath, er.UnreadableFile) as error:
        raise er.StaleApproval(
            f"cannot compare {form['path']} with what was shown: {error}"
        ) from error
    if not as_shown:
        file = file_path(project.folder(item.run), form["path"])
        raise er.StaleApproval(
            f"{file} is no longer what request #{item.id} shows (it was changed or removed); "
            "restore it, or reject the request so that the run creates it again"
        )


# A worker that has the token of its run in its environment can take and submit the work of that
# run, and nothing that a human decides. It is a guard rail: a process of the same user can remove
# the variable, or open the database without signoff.

_PREFIX = "signoff-worker-"


def token_of(project: Project, row: RunRow) -> str:
    """Returns the token of a run for its workers."""
    seed = load_state(project, row).seed
    return _PREFIX + hashlib.sha256(f"worker of {seed}".encode()).hexdigest()[:32]


def check_token(project: Project, row: RunRow) -> None:
    """Raises if this is a worker of another run."""
    token = project.worker_token
    if token and token != token_of(project, row):
        raise er.UsageError(
            f"the token in {WORKER_VARIABLE} does not belong to run {row.name!r}; a worker does "
            "the work of its own run only"
        )


def refuse_worker(token: str, what: str) -> None:
    """Raises if there is the token of a worker; `what` is what only a human may do."""
    if token:
        raise er.UsageError(
            f"a worker cannot {what}: {WORKER_VARIABLE} is set; a human does this without it"
        )


def answer_as_agent(project: Project, number: int, answer: AnswerInput) -> InboxItem:
    """Records an agent's answer to a question or a choice that is open to agents.

    Anything else is refused: approvals, requests that are for humans, and work.
    """
    if answer.digest is None:
        raise er.InvalidAnswer("give the digest of the request as it was shown")
    return record_answer(replace(project, for_agent=True), number, answer)


# An edit of the approver goes into the file itself, like any other edit, and is then approved: the
# answer records what the file contains at that moment.


@dataclass(frozen=True)
class FileDraft:
    """The file of an approval as it is now."""

    path: str
    text: str
    digest: str
    """Empty if it does not exist yet."""


def file_to_edit(project: Project, item: InboxItem) -> FileDraft | None:
    """Returns the file that the approver of a request may edit; None if there is none.

    Raises `UnreadableFile` if it is not text.
    """
    form = form_of(project, item)
    if form.get("edits") != rq.Edits.ACCEPT:
        return None
    path = str(form["path"])
    found = read_text(RunFiles(project.home.runs), project.secrets, item.run, path)
    if found is None:
        return FileDraft(path, "", "")
    return FileDraft(path, found.text, found.digest)


def approve_edited(
    project: Project, number: int, answer: AnswerInput, text: str, file_digest: str
) -> InboxItem:
    """Writes a text into the file of an approval and approves it.

    Raises `StaleApproval` if the file is no longer the one with `file_digest`, which the approver
    has seen.
    """
    item = project.store.item(number)
    file = file_to_edit(project, item)
    if file is None:
        raise er.InvalidAnswer(f"request #{number} has no file that can be edited")
    # Someone else may have edited it since, and their text would be overwritten without having been
    # seen.
    if file.digest != file_digest:
        raise er.StaleApproval(f"{file.path} has changed since it was shown; look at it again")
    if text_digest(text) != file.digest:
        RunFiles(project.home.runs).write(item.run, file.path, text)
    return record_answer(project, number, answer)


def open_requests(project: Project, run: str | None = None) -> list[InboxLine]:
    """Returns the pending requests of one run or of all, oldest first.

    Their forms, which can be long, are not read; `request_to_json` reads the one it needs.
    """
    name = project.run(run).name if run is not None else None
    return [line for line in project.store.waiting() if name in (None, line.run)]


def request_line(project: Project, line: InboxLine) -> RequestInfo:
    """Returns a request as a list shows it, with its title; what it shows is not read."""
    from signoff.app.json_documents import RequestInfo, document

    form = decode(project.store.item(line.id).form, lambda digest: digest)
    about = {"title": title_of(form), "question_id": form.get("question_id")}
    return document(RequestInfo, line, number=line.id, **about)


def refuse_reference_as_answer(project: Project, word: str) -> None:
    """Raises `UsageError` if a text given as the answer names a request or a run.

    The user has most likely forgotten the answer itself, and an answer cannot be undone.
    """
    number, is_request = request_number(word), False
    if number is not None:
        with suppress(er.UnknownName):
            is_request = bool(project.store.item(number))
    if is_request or project.has_run(word):
        raise er.UsageError(
            f"the answer is missing: {word!r} is a request or a run (if it is the answer itself, "
            "give the request or the run too)",
            remedy=AnswerRequest(word.removeprefix("#")),
        )


def request_to_json(project: Project, item: InboxItem) -> LocalRequest:
    """Returns a request as plain values, with the commands that answer it."""
    from signoff.app.json_documents import LocalRequest, document

    form = form_of(project, item)
    names = ("path", "edits", "schema", "question_id", "default")
    path, folder = form.get("path"), project.folder(item.run)
    prompt_file = folder / HITL / prompt_name(item.id)
    has_file = item.kind.answer_form is rq.AnswerForm.WORK and prompt_file.is_file()
    return document(
        LocalRequest,
        item,
        **{name: form.get(name) for name in names},
        number=item.id,
        title=title_of(form),
        options=rq.options_of(form),
        questions=form.get("questions") or [],
        shown=form.get("shown") or {},
        presence=bool(form.get(rq.PRESENCE)),
        at_deadline=rq.describe_default(form) if item.deadline is not None else None,
        answer=answer_to_json(item),
        prompt_file=str(prompt_file) if has_file else None,
        file=str(file_path(folder, path)) if path else None,
        commands=answer_commands(item, form, project.clock.now()),
    )


def answer_to_json(item: InboxItem) -> dict[str, Any] | None:
    """Returns the answer, its author and its time; None if there is none yet."""
    if item.answer is None:
        return None
    answer = json.loads(item.answer)
    return {
        "value": answer.get("value"),
        "text": answer.get("text") or "",
        "by": item.answered_by,
        "at": item.answered_at,
        **{
            name: answer[name]
            for name in ("content_digest", "extras", "presence")
            if name in answer
        },
    }
