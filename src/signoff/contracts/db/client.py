"""The path of `SafeDatabaseClient` in earlier versions."""

from signoff.guarded_db.client import SafeDatabaseClient

__all__ = ["SafeDatabaseClient"]
