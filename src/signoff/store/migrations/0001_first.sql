CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    workflow    TEXT NOT NULL,
    target      TEXT NOT NULL,
    definition  TEXT NOT NULL,
    description BLOB NOT NULL,      -- digest of the frozen definition's JSON, in blobs
    status      TEXT NOT NULL,
    step        TEXT,
    iteration   INTEGER NOT NULL DEFAULT 1,
    reason      TEXT NOT NULL DEFAULT '',
    due_at      REAL,
    created_at  REAL NOT NULL,
    updated_at  REAL NOT NULL,
    head        INTEGER NOT NULL DEFAULT 0,
    fence       INTEGER NOT NULL DEFAULT 0,
    owner       TEXT,
    cancel      TEXT,
    needs       TEXT,       -- a JSON list: what a worker must be able to do; NULL if never queued
    dispatch    TEXT,       -- the attempt of a dispatcher that it was last taken for
    attempt     INTEGER
);
CREATE INDEX runs_due ON runs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_status ON runs (status);

-- One row per commit of a run. Appended in time order, so many runs share pages;
-- the primary key is what a resume reads by.
CREATE TABLE journal (
    run    INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    events TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE checkpoints (
    run   INTEGER PRIMARY KEY,
    seq   INTEGER NOT NULL,
    state TEXT NOT NULL
);

-- A rowid table with a unique digest: long texts stay in sequence on their pages.
CREATE TABLE blobs (
    digest BLOB NOT NULL UNIQUE,
    text   TEXT NOT NULL
);

-- The number of a request is never used again, not even after its run was deleted or moved away:
-- an old command or link would answer a request of another run.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    run         INTEGER NOT NULL,
    name        TEXT NOT NULL,      -- of the run
    effect      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    prompt      TEXT NOT NULL,
    form        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    step        TEXT NOT NULL,
    opened_at   REAL NOT NULL,
    deadline    REAL,
    state       TEXT NOT NULL DEFAULT 'open',
    answer      TEXT,
    answered_by TEXT,
    answered_at REAL
);
CREATE INDEX inbox_live ON inbox (run) WHERE state IN ('open', 'answered');
-- Holds all that a list shows, so listing what waits reads nothing but this.
CREATE INDEX inbox_open ON inbox (id, name, step, kind, prompt, opened_at, deadline, state)
    WHERE state = 'open';
-- Answers that their run has not used yet are few, whatever else waits.
CREATE INDEX inbox_answered ON inbox (run) WHERE state = 'answered';

CREATE TABLE ledger (
    run            INTEGER NOT NULL,
    step           TEXT NOT NULL,
    agent          TEXT NOT NULL,
    model          TEXT NOT NULL,
    calls          INTEGER NOT NULL,
    tokens_in      INTEGER NOT NULL,
    tokens_out     INTEGER NOT NULL,
    usd            REAL NOT NULL,
    unknown_tokens INTEGER NOT NULL,
    unknown_usd    INTEGER NOT NULL,
    tokens_cached  INTEGER NOT NULL,        -- read from a prompt cache
    unknown_cached INTEGER NOT NULL,
    PRIMARY KEY (run, step, agent, model)
) WITHOUT ROWID;

CREATE TABLE late (
    run     INTEGER NOT NULL,
    effect  TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (run, effect, attempt)
) WITHOUT ROWID;

-- A process that drives runs renews one row here, however many runs it holds.
CREATE TABLE owners (
    id    TEXT PRIMARY KEY,
    host  TEXT NOT NULL,
    pid   INTEGER NOT NULL,
    born  TEXT NOT NULL,
    until REAL NOT NULL
) WITHOUT ROWID;

-- Numbers computed from a run's journal up to `seq`, for metrics. They can be computed again at any
-- time, so a row that is missing or out of date loses nothing.
CREATE TABLE run_summaries (
    run     INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL,
    version INTEGER NOT NULL,
    summary TEXT NOT NULL
);

-- Processes that claim runs. An owner without a row here drives only the runs its user named.
CREATE TABLE workers (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    owner        TEXT NOT NULL UNIQUE,
    slots        INTEGER NOT NULL,
    capabilities TEXT NOT NULL,
    started_at   REAL NOT NULL
);

-- Where runs went that were moved to another store.
CREATE TABLE moved (
    name     TEXT PRIMARY KEY,
    target   TEXT NOT NULL,
    moved_at REAL NOT NULL
);
-- Runs that arrive from another store, and are not runs of this one yet.
CREATE TABLE arrivals (
    name     TEXT PRIMARY KEY,
    document TEXT NOT NULL
);
