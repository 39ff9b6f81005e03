-- The attempt of a dispatcher that a run was last taken for; NULL if it was taken without one.
ALTER TABLE runs ADD COLUMN dispatch TEXT;
ALTER TABLE runs ADD COLUMN attempt INTEGER;
