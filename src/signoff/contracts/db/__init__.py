"""Import paths of earlier versions; the guarded database is `signoff.guarded_db`."""
