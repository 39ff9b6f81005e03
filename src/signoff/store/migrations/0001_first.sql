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
    cancel      TEXT
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

CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY,
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
