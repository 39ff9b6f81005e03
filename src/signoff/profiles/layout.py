"""How sessions are shown in the run directory: by the names of their users' files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.profiles.view import session_fields
from signoff.store.rundir.layout import Layout, ShownRun


class ProfileLayout(Layout):
    """Shows a session: its state is that of `WorkflowState`, its files are those it wrote."""

    shows_calls = False

    def fields(self, run: ShownRun) -> Mapping[str, Any]:
        """Returns the fields of `WorkflowState`; its status is `workflow_status` here."""
        fields = session_fields(run.state, run.description.get("source") or {}, run.requests)
        # Every `state.json` has its own `status` and `updated_at`.
        del fields["updated_at"]
        return {"workflow_status": fields.pop("status"), **fields}
