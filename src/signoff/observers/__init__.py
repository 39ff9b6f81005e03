"""Observers that a project's settings turn on, and what keeps them from disturbing a run."""
