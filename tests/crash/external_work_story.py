"""A story in which an external worker does all the work of a run, up to the human gate."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from signoff.app.people.answering import AnswerInput
from signoff.app.people.external_work import WorkItem, next_work, start_pulled, submit
from signoff.app.settings.home import init_home
from signoff.app.settings.project import open_project
from signoff.core.errors import UnknownName
from signoff.documents import bounded
from signoff.documents.python_files import import_file
from signoff.runtime.store_port import Store
from signoff.testing import EffectLog
from tests import preload  # noqa: F401
from tests.acceptance.book_workflow import WORKFLOW

RUN = "one"

# Its conditions are parsed here, once: each process would have to start another one for that.
with TemporaryDirectory() as _folder:
    (Path(_folder) / "book.py").write_text(WORKFLOW)
    import_file(Path(_folder) / "book.py")
bounded._CHILD.close()


async def story(store: Store, log: EffectLog) -> None:
    """Starts the run, or takes over from a killed worker; submits work until none is open."""
    folder = log.directory
    (folder / "book.py").write_text(WORKFLOW)
    environment = {"HOME": str(folder)}
    init_home(folder, environment)
    with open_project(folder, environment) as project:
        project.store.close()
        project.store = store
        try:
            status = await next_work(project, RUN)
        except UnknownName:
            target = project.find("book.py:BOOK")
            status = await start_pulled(project, target, {"title": "Emma"}, name=RUN)
        while status.work:
            item = status.work[-1]
            status = await submit(project, RUN, str(item.number), _submission(item))
    assert (status.row.step, len(status.people)) == ("gate", 1), status


def _submission(item: WorkItem) -> AnswerInput:
    if item.step == "plan":
        return AnswerInput(json.dumps({"chapters": [1, 2]}))
    if item.step == "write":
        longer = "UPDATE chapters SET words = words + 200 WHERE id = ?"
        return AnswerInput("{}", extras={"statements": [[longer, [item.item]]]})
    return AnswerInput(json.dumps({"decision": "approved"}))
