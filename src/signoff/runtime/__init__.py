"""Runs handlers and makes them durable: runner, journal, effects, limits, observers."""
