"""Works a run from outside until a person is needed; killed at one of its writes, if told to."""

import asyncio
import json
import os
import sys
from pathlib import Path

from signoff.app.answering import AnswerInput
from signoff.app.external_work import RunStatus, WorkItem, next_work, submit
from signoff.app.project import Project, open_project
from signoff.testing.crashing_store import CrashingStore

RUN = "one"


def work(folder: Path, at: int = 0) -> RunStatus:
    """Works the run in a folder; returns where it stands then."""
    with open_project(folder, os.environ) as project:
        if at:
            project.store = CrashingStore(project.store, at=at, when="after")
        return asyncio.run(_all(project))


async def _all(project: Project) -> RunStatus:
    found = await next_work(project, RUN)
    while found.work:
        piece = found.work[-1]
        found = await submit(project, RUN, piece.number, _worked(piece))
    return found


def _worked(piece: WorkItem) -> AnswerInput:
    if piece.step == "plan":
        return AnswerInput(json.dumps({"chapters": [1, 2]}))
    if piece.step == "write":
        longer = "UPDATE chapters SET words = words + 200 WHERE id = ?"
        return AnswerInput("{}", extras={"statements": [[longer, [piece.item]]]})
    return AnswerInput(json.dumps({"decision": "approved"}))


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]))
