"""Lets an approver edit the file of an approval first, where the request accepts that.

The text goes into the file itself, like any other edit, and is then approved: the answer records
what the file contains at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from signoff.app.answering import AnswerInput, form_of, record_answer
from signoff.app.project import Project
from signoff.core.digest import text_digest
from signoff.core.requests import Edits
from signoff.errors import InvalidAnswer, StaleApproval
from signoff.runtime.file_read import read_text
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.files import RunFiles


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
    if form.get("edits") != Edits.ACCEPT:
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
        raise InvalidAnswer(f"request #{number} has no file that can be edited")
    if file.digest != file_digest:
        raise StaleApproval(f"{file.path} has changed since it was shown; look at it again")
    if text_digest(text) != file.digest:
        RunFiles(project.home.runs).write(item.run, file.path, text)
    return record_answer(project, number, answer)
