-- Numbers computed from a run's journal up to `seq`, for metrics. They can be computed again at any
-- time, so a row that is missing or out of date loses nothing.
CREATE TABLE run_summaries (
    run     INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL,
    version INTEGER NOT NULL,
    summary TEXT NOT NULL
);
