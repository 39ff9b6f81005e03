"""Reads and validates files that users write, and reports problems with file and line."""
