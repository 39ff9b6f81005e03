"""The path of `Postcondition` in earlier versions."""

from signoff.guarded_db.postconditions import Postcondition

__all__ = ["Postcondition"]
