-- Since when a run is queued, so that a claim reads the first runs of the queue and not all of them.
-- Only queued runs have it: an index on `updated_at` would be changed by every commit of a run.
ALTER TABLE runs ADD COLUMN queued_at double precision
    GENERATED ALWAYS AS (CASE WHEN status = 'queued' THEN updated_at END) STORED;
CREATE INDEX runs_queued ON runs (queued_at, id) WHERE queued_at IS NOT NULL;
