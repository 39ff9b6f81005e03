"""Notifies programs and webhooks that a run waits, is parked or has ended."""
