-- The number of a request is never used again, not even after its run was deleted or moved away:
-- an old command or link would answer a request of another run.
ALTER TABLE inbox RENAME TO inbox_before;
DROP INDEX inbox_live;
DROP INDEX inbox_open;
DROP INDEX inbox_answered;
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
INSERT INTO inbox SELECT * FROM inbox_before;
DROP TABLE inbox_before;
CREATE INDEX inbox_live ON inbox (run) WHERE state IN ('open', 'answered');
CREATE INDEX inbox_open ON inbox (id, name, step, kind, prompt, opened_at, deadline, state)
    WHERE state = 'open';
CREATE INDEX inbox_answered ON inbox (run) WHERE state = 'answered';
