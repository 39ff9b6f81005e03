"""Formats of `signoff export`: pure functions of a run's journal."""
