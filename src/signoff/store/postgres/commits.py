"""Applies commits to the database: one statement, however many runs it is about.

The statement's first part compares the head and the fence of each run with those the commit was
built on, and advances the runs that match. All other parts write only what belongs to those. So
a commit of a runner that has lost its run changes nothing, and all of it is one round trip.

Only a run that is about to wait needs a second statement in the same transaction. It has to see
an answer that arrived while the first one waited for the run's row, and a statement sees nothing
that was committed after it began.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.databases import driver
from signoff.errors import StoreDamaged
from signoff.runtime.store_port import Commit, CommitResult, RunId, Topic
from signoff.store.base import Row, ledger_value, replace_surrogates
from signoff.store.postgres import queries as q
from signoff.store.postgres.connection import ServerSession

REFUSED = CommitResult(accepted=False)

_COMMITS = (
    "run bigint", "head bigint", "fence bigint", "status text", "step text", "iteration bigint",
    "reason text", "due_at float8", "at float8", "events text", "leaves boolean",
    "withdraw boolean", "checkpoint text", "name text", "workflow text", "target text",
    "definition text", "description bytea", "created_at float8", "owner text", "needs text",
)  # fmt: skip
"""A row for each commit. `leaves` is whether the run is released at once; what follows the
checkpoint is there only if the commit creates its run."""
_BLOBS = ("n int", "digest bytea", "text text")
_LEDGER = (
    "n int", "step text", "agent text", "model text", "calls bigint", "tokens_in bigint",
    "tokens_out bigint", "usd float8", "unknown_tokens bigint", "unknown_usd bigint",
    "tokens_cached bigint", "unknown_cached bigint",
)  # fmt: skip
_OPENED = (
    "n int", "effect text", "kind text", "prompt text", "form text", "digest text", "step text",
    "opened_at float8", "deadline float8",
)  # fmt: skip
_USED = ("n int", "item bigint")
_WITHDRAWN = ("item bigint",)


_SQL = """
WITH input AS (SELECT * FROM {commits}),
advanced AS (
    UPDATE {s}.runs SET head = input.head + 1, status = input.status, step = input.step,
        iteration = input.iteration, reason = input.reason, due_at = input.due_at,
        updated_at = input.at, owner = CASE WHEN NOT input.leaves THEN runs.owner END
    FROM input
    WHERE runs.id = input.run AND runs.head = input.head AND runs.fence = input.fence
    RETURNING input.n, runs.id, runs.name, input.head, input.fence, input.events,
              input.checkpoint, input.withdraw
), created AS (
    INSERT INTO {s}.runs (name, workflow, target, definition, description, created_at,
                            updated_at, owner, needs, status, step, iteration, reason, due_at,
                            head, fence)
    SELECT name, workflow, target, definition, description, created_at, at,
           CASE WHEN NOT leaves THEN owner END, needs, status, step, iteration, reason, due_at,
           1, 1
    FROM input WHERE name IS NOT NULL ORDER BY n
    ON CONFLICT (name) DO NOTHING
    RETURNING id, name
), accepted AS (
    SELECT * FROM advanced
    UNION ALL
    SELECT n, created.id, name, head, fence, events, checkpoint, withdraw
    FROM created JOIN input USING (name)
), text AS (SELECT * FROM {blobs}),
blobs AS (
    INSERT INTO {s}.blobs (digest, text)
    SELECT digest, text FROM text JOIN accepted USING (n) ORDER BY digest
    ON CONFLICT DO NOTHING
), uses AS (
    INSERT INTO {s}.blob_uses (digest, run)
    SELECT digest, id FROM text JOIN accepted USING (n) ORDER BY digest
    ON CONFLICT DO NOTHING
), checkpoints AS (
    INSERT INTO {s}.checkpoints (run, seq, state)
    SELECT id, head + 1, checkpoint FROM accepted
    WHERE checkpoint IS NOT NULL
    ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state
), ledger AS (
    INSERT INTO {s}.ledger (run, step, agent, model, calls, tokens_in, tokens_out, usd,
                              unknown_tokens, unknown_usd, tokens_cached, unknown_cached)
    SELECT id, step, agent, model, calls, tokens_in, tokens_out, usd, unknown_tokens, unknown_usd,
           tokens_cached, unknown_cached
    FROM {ledger} JOIN accepted USING (n)
    ON CONFLICT (run, step, agent, model) DO UPDATE SET
        calls = excluded.calls, tokens_in = excluded.tokens_in,
        tokens_out = excluded.tokens_out, usd = excluded.usd,
        unknown_tokens = excluded.unknown_tokens, unknown_usd = excluded.unknown_usd,
        tokens_cached = excluded.tokens_cached, unknown_cached = excluded.unknown_cached
), opened AS (
    INSERT INTO {s}.inbox (run, name, effect, kind, prompt, form, digest, step, opened_at,
                             deadline)
    SELECT id, name, effect, kind, prompt, form, digest, step, opened_at, deadline
    FROM {opened} JOIN accepted USING (n)
    ORDER BY position
), answer AS (SELECT * FROM {used} JOIN accepted USING (n)),
used AS (
    UPDATE {s}.inbox SET state = 'used' FROM answer
    WHERE inbox.id = answer.item AND state = 'answered'
    RETURNING inbox.id
), withdrawn AS (
    -- A row can be changed only once by a statement, and an answer that is used is not withdrawn.
    UPDATE {s}.inbox SET state = 'withdrawn' FROM accepted
    WHERE inbox.run = accepted.id AND inbox.state IN ('open', 'answered')
      AND (withdraw
           OR inbox.id IN (SELECT item FROM {withdrawn}) AND inbox.state = 'open')
      AND inbox.id NOT IN (SELECT item FROM answer)
), journal AS (
    INSERT INTO {s}.journal (run, seq, fence, events)
    SELECT id, head + 1, fence, events FROM accepted
)
-- Division by zero undoes the transaction: a commit must not use an answer that is not there.
SELECT n, id,
       1 / (SELECT CASE WHEN (SELECT count(*) FROM answer) = (SELECT count(*) FROM used)
                        THEN 1 ELSE 0 END),
       {tell}
FROM accepted
"""


def _commit_statement() -> str:
    """Returns the statement of every commit; `n` is the position of a commit among its rows."""
    places = (f"${number}" for number in count(1))
    return _SQL.format(
        s="{s}",
        commits=_rows(_COMMITS, places, "n"),
        blobs=_rows(_BLOBS, places),
        ledger=_rows(_LEDGER, places),
        opened=_rows(_OPENED, places, "position"),
        used=_rows(_USED, places),
        withdrawn=_rows(_WITHDRAWN, places),
        tell=_tell_if(next(places)),
    )


def _tell_if(place: str) -> str:
    """Returns the expression that notifies listeners of a topic given as a value, if it is."""
    return f"CASE WHEN {place}::text IS NOT NULL THEN {q.tell(place + '::text')} END"


def _rows(columns: Sequence[str], places: Iterator[str], position: str = "") -> str:
    """Returns a table of rows that are sent as one array for each column."""
    names, kinds = zip(*(column.split() for column in columns), strict=True)
    arrays = ", ".join(f"{next(places)}::{kind}[]" for kind in kinds)
    ordinality, last = (" WITH ORDINALITY", [position]) if position else ("", [])
    return f"unnest({arrays}){ordinality} AS t ({', '.join([*names, *last])})"


_COMMIT = _commit_statement()

_COMMITTED = """
SELECT runs.id, runs.owner, runs.fence, journal.fence, journal.events
FROM {s}.runs JOIN {s}.journal ON journal.run = runs.id AND journal.seq = $2
WHERE CASE WHEN $3::text IS NULL THEN runs.id = $1 ELSE runs.name = $3 END
"""

_RELEASE = """
UPDATE {s}.runs
SET owner = CASE WHEN wakes THEN runs.owner END,
    status = CASE WHEN wakes THEN 'running' ELSE runs.status END,
    due_at = CASE WHEN NOT wakes THEN runs.due_at END
FROM (
    SELECT t.*, EXISTS (SELECT 1 FROM {s}.inbox
                        WHERE inbox.run = t.run AND state = 'answered') AS wakes
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS t (run, head, fence)
) AS resting
WHERE runs.id = resting.run AND runs.head = resting.head AND runs.fence = resting.fence
RETURNING runs.id, wakes
"""


def apply(session: ServerSession, commits: Sequence[Commit]) -> list[CommitResult]:
    """Applies commits in one transaction, each completely or not at all."""
    batches = _batches(commits)
    try:
        if len(batches) == 1:
            return _apply_batch(session, commits)
        with session.transaction():
            return [result for batch in batches for result in _apply_batch(session, batch)]
    except driver().errors.DivisionByZero as error:
        raise StoreDamaged("a commit uses an answer that the database does not have") from error


def read_back(session: ServerSession, commit: Commit) -> CommitResult:
    """Returns what became of a commit whose answer was lost, from what the database has now."""
    name = commit.new.name if commit.new is not None else None
    values = [commit.run, commit.head + 1, name]
    for run, owner, fence, by_fence, events in session.rows(_COMMITTED, values):
        if (by_fence, events) == (commit.fence, commit.events):
            wake = _waits(commit) and fence == commit.fence and owner is not None
            return CommitResult(accepted=True, wake=wake, run=RunId(run))
    return REFUSED


def _batches(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Splits commits where a run occurs again, which one statement could not change twice."""
    batches: list[list[Commit]] = []
    seen: set[int | str] = set()
    for commit in commits:
        run = commit.run if commit.new is None else commit.new.name
        if not batches or run in seen:
            batches.append([])
            seen.clear()
        seen.add(run)
        batches[-1].append(commit)
    return batches


def _apply_batch(session: ServerSession, commits: Sequence[Commit]) -> list[CommitResult]:
    statement = _COMMIT, _values(commits)
    # A new run has no answers yet, so it is released together with being created.
    resting = [(c.run, c.head + 1, c.fence) for c in commits if c.new is None and _waits(c)]
    woken: dict[int, bool] = {}
    accepted: Sequence[Row]
    if resting:
        release = _RELEASE, _columns(resting, 3)
        accepted, released = session.together(statement, release)
        woken.update(released)
    else:
        accepted = session.rows(*statement)
    results = [REFUSED] * len(commits)
    for n, run, *_ in accepted:
        results[n - 1] = CommitResult(accepted=True, wake=woken.get(run, False), run=RunId(run))
    return results


def _waits(commit: Commit) -> bool:
    return commit.release and commit.status is Status.WAITING


def _values(commits: Sequence[Commit]) -> list[object]:
    """Returns the values of the statement, table by table."""
    numbered = list(enumerate(commits, 1))
    opened = [
        (n, *item._replace(prompt=replace_surrogates(item.prompt)))
        for n, commit in numbered
        for item in commit.opened
    ]
    used = [(n, item) for n, commit in numbered for item in commit.used]
    withdrawn = [(item,) for commit in commits for item in commit.withdrawn]
    return [
        *_columns([_commit_row(commit) for commit in commits], len(_COMMITS)),
        *_columns(list(_blob_rows(numbered)), len(_BLOBS)),
        *_columns(list(_ledger_rows(numbered)), len(_LEDGER)),
        *_columns(opened, len(_OPENED)),
        *_columns(used, len(_USED)),
        *_columns(withdrawn, len(_WITHDRAWN)),
        _topic(commits),
    ]


def _topic(commits: Sequence[Commit]) -> Topic | None:
    """Returns the topics to notify; none for a commit in the middle of a run.

    Transactions that notify are committed one after the other by the server, so few may.
    """
    if any(_gives_work(commit) for commit in commits):
        return Topic.WORK
    if any(each.release or each.opened or each.new is not None for each in commits):
        return Topic.RUNS
    return None


def _gives_work(commit: Commit) -> bool:
    handed_over = commit.new is not None and commit.new.needs is not None
    return handed_over or (commit.release and commit.status is Status.QUEUED)


def _commit_row(commit: Commit) -> Row:
    new = commit.new
    row = (
        commit.run if new is None else 0,
        commit.head,
        commit.fence,
        commit.status.value,
        commit.step,
        commit.iteration,
        replace_surrogates(commit.reason),
        commit.due_at,
        commit.at,
        commit.events,
        commit.release and (new is not None or commit.status is not Status.WAITING),
        commit.withdraw,
        commit.checkpoint,
    )
    if new is None:
        return (*row, *(None,) * (len(_COMMITS) - len(row)))
    description = bytes.fromhex(text_digest(new.description))
    names = (new.name, new.workflow, new.target, new.definition)
    needs = None if new.needs is None else json.dumps(new.needs)
    return (*row, *names, description, new.created_at, new.owner, needs)


def _blob_rows(numbered: Iterable[tuple[int, Commit]]) -> Iterable[Row]:
    for n, commit in numbered:
        if commit.new is not None:
            text = commit.new.description
            yield n, bytes.fromhex(text_digest(text)), text
        for digest, text in commit.blobs.items():
            yield n, bytes.fromhex(digest), text


def _ledger_rows(numbered: Iterable[tuple[int, Commit]]) -> Iterable[Row]:
    for n, commit in numbered:
        # Names that differ only in what cannot be stored become one entry: the last.
        rows = [(n, *map(ledger_value, entry)) for entry in commit.ledger]
        yield from {row[:4]: row for row in rows}.values()


def _columns(rows: Sequence[Row], width: int) -> list[list[object]]:
    return [[row[column] for row in rows] for column in range(width)]
