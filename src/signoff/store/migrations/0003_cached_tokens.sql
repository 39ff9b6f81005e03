-- Tokens read from a prompt cache. Older calls did not report them, so theirs are unknown.
ALTER TABLE ledger ADD COLUMN tokens_cached INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN unknown_cached INTEGER NOT NULL DEFAULT 0;
UPDATE ledger SET unknown_cached = calls;
-- The ledger in a checkpoint would count them as known. The journal has everything, and the next
-- checkpoint is made from there.
DELETE FROM checkpoints;
