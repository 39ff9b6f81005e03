"""Records the answers that users put as files into a run's `hitl/` folder."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.app.answering import AnswerInput, current_user, record_answer
from signoff.app.project import Project
from signoff.errors import InvalidAnswer, StaleApproval
from signoff.runtime.store_port import InboxItem
from signoff.store.rundir.answers import FileAnswer


@dataclass(frozen=True)
class FileAnswersResult:
    """The result of reading a run's answer files."""

    answered: tuple[InboxItem, ...] = ()
    warnings: tuple[str, ...] = ()
    """Files and entries that could not be used, and why."""


def take_file_answers(project: Project, run: str) -> FileAnswersResult:
    """Records every usable answer and archives its file, so that it is used once."""
    directory = project.directory()
    read = directory.read_answers(run)
    warnings = list(read.warnings)
    answered = []
    used: dict[str, FileAnswer] = {}
    for answer in read.answers:
        # The inbox stores the file's token, so a crash before archiving cannot use it twice.
        by = f"{current_user()} ({answer.by})"
        # The answer counts from when the file was written: a deadline may have passed since.
        at = min(answer.file.changed_at, project.clock.now())
        given = AnswerInput(answer.value, answer.text, by, answer.digest, at=at)
        try:
            answered.append(record_answer(project, answer.number, given))
        except (InvalidAnswer, StaleApproval) as error:
            warnings.append(f"{answer.file.path.name}: {error}")
        else:
            used.setdefault(answer.file.token, answer)
    for answer in used.values():
        directory.archive(answer)
    return FileAnswersResult(tuple(answered), tuple(warnings))
