"""The path of `Upkeep` in earlier versions."""

from signoff.guarded_db.upkeep import Upkeep

__all__ = ["Upkeep"]
