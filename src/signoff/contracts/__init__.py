"""Steps that prove they were done: definitions with conditions, gates, and a guarded database."""
