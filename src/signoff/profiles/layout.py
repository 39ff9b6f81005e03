"""How sessions are shown in the run directory: by the names of their users' files."""

from __future__ import annotations

from signoff.store.rundir.layout import Layout


class ProfileLayout(Layout):
    """Shows a session."""
