"""The page about what runs have cost."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from signoff.app.runs import spending
from signoff.pages.spend import spend_page
from signoff.web.projects import OpenProject
from signoff.web.views.frame import show_page

HERE = "/spend"

router = APIRouter(include_in_schema=False)


@router.get("/spend")
def show_spend(
    request: Request, project: OpenProject, days: Annotated[int, Query(ge=1, le=36_500)] = 30
) -> Response:
    """Shows what runs have cost in the last days."""
    since, totals = spending(project, days)
    return show_page(request, project, "Spend", spend_page(totals, since, days), here=HERE)
