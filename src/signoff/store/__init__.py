"""Where runs live: memory and SQLite behind one protocol, and the run directory."""
