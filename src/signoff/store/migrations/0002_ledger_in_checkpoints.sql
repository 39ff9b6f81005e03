-- A checkpoint now holds the run's ledger too. One without would lose what was spent before it;
-- the journal has it all, and the next checkpoint is made from there.
DELETE FROM checkpoints;
