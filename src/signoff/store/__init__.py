"""Stores runs in memory or SQLite, behind one protocol, and shows them in run directories."""
