"""The style sheet of reports, which the pages share."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from fastapi.responses import Response

router = APIRouter(include_in_schema=False)


@router.get("/static/report.css")
def report_style() -> Response:
    """Sends the style sheet of reports."""
    style = resources.files("signoff.pages").joinpath("style.css").read_bytes()
    return Response(style, media_type="text/css")
