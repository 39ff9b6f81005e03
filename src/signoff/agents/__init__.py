"""Whoever answers a prompt."""
