-- What a worker must be able to do to drive a run, as a JSON list; NULL for a run that was never
-- handed to workers.
ALTER TABLE runs ADD COLUMN needs TEXT;
-- Answers that their run has not used yet are few, whatever else waits.
CREATE INDEX inbox_answered ON inbox (run) WHERE state = 'answered';

-- Processes that claim runs. An owner without a row here drives only the runs its user named.
CREATE TABLE workers (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    owner        TEXT NOT NULL UNIQUE,
    slots        INTEGER NOT NULL,
    capabilities TEXT NOT NULL,
    started_at   REAL NOT NULL
);
