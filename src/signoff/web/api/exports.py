"""A whole run as one document, in the formats of the plug-ins."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import Response

from signoff import plugins
from signoff.app.history import export
from signoff.web.api.prefix import API
from signoff.web.api.runs import RunName
from signoff.web.projects import OpenProject

_DOCUMENT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The document.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}

router = APIRouter(prefix=API, tags=["exports"])


@router.get("/exports", operation_id="list_formats")
def list_formats() -> list[str]:
    """List the formats in which a run can be exported."""
    return sorted(plugins.export_paths())


@router.get(
    "/runs/{run}/exports/{format}",
    operation_id="export_run",
    response_class=Response,
    responses=_DOCUMENT,
)
def export_run(
    project: OpenProject,
    run: RunName,
    format: Annotated[str, Path(max_length=100, description="One of the formats.")],  # noqa: A002  # part of the address
) -> Response:
    """Export a run; the same run gives the same bytes."""
    text = "".join(export(project, format, project.store.row(run).name))
    # As text whatever it is: a document with texts of models must not be rendered by a browser.
    return Response(text.encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")
