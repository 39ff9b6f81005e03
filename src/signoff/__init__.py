"""One durable engine for AI work that has to be reviewed before it counts."""

from signoff._version import __version__

__all__ = ["__version__"]
