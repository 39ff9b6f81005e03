"""The run directory: a readable projection of the journal, and how humans answer by file."""
