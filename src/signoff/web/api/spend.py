"""What runs have cost."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from signoff.app.runs import spending, total_to_json
from signoff.web.api.documents import SpendDocument
from signoff.web.api.prefix import API
from signoff.web.projects import OpenProject

MOST_DAYS = 36_500

router = APIRouter(prefix=API, tags=["spend"])


@router.get("/spend", operation_id="get_spend")
def get_spend(
    project: OpenProject,
    days: Annotated[
        float, Query(gt=0, le=MOST_DAYS, description="Only runs that changed in the last days.")
    ] = 30,
) -> SpendDocument:
    """Show what runs have cost, by workflow, agent and model, the most expensive first.

    A run counts with everything it had cost when it last came to rest.
    """
    since, totals = spending(project, days)
    lines = [*map(total_to_json, totals)]
    return SpendDocument.model_validate({"since": since, "lines": lines})
