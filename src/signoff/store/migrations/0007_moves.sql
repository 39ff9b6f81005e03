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
