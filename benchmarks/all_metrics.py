"""W14: metrics over 10,000 runs, read for the first time and read again, in CPU time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import process_time

from benchmarks.engine import AGENT, AtOnce, review_workflow
from benchmarks.sample import Figures
from benchmarks.sizes import FULL, Scale
from signoff.app.runs.run_records import metrics_text
from signoff.core.outcome import Status
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Commit, JournalRow, NewRun, RunId
from signoff.store.sqlite import SqliteStore


async def all_metrics(folder: Path, scale: Scale) -> Figures:
    """W14: one round of a review, stored many times under other names."""
    runs = 10_000 if scale == FULL else 500
    with closing(SqliteStore(folder / "signoff.db")) as store:
        async with Engine(store, agents={AGENT: AtOnce()}) as engine:
            await engine.start(review_workflow(), {"rounds": 1, "critics": 4}, name="first")
        row = store.row("first")
        journal = store.journal(row.id)
        for begin in range(0, runs, 500):
            store.commit([_copy(journal, row.status, n) for n in range(begin, begin + 500)])
        seconds, text = [], ""
        for _ in range(3):
            began = process_time()
            text = metrics_text(store, row.updated_at)
            seconds.append(process_time() - began)
    assert f'workflow_runs_total{{completion_reason="completed"}} {runs + 1}.0\n' in text
    first, *again = seconds
    return {"s": min(again), "first_s": first}


def _copy(journal: Sequence[JournalRow], status: Status, number: int) -> Commit:
    """Returns the whole journal of a run as the only commit of another one."""
    name = f"run-{number}"
    events = ",".join(row.events[1:-1] for row in journal)
    new = NewRun(name, "review", "", "", "{}", float(number), "")
    return Commit(
        RunId(0), 1, 0, f"[{events}]", status, None, 1, "", None, 0.0, release=True, new=new
    )
