"""The description of the REST interface, in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from signoff._version import __version__
from signoff.web.api.documents import ProblemDocument
from signoff.web.problems import PROBLEM_TYPE

_TEXT = """\
The use cases of signoff as resources, for programs on this machine.

Send a bearer token (`Authorization: Bearer ...`). Its scope says what it may do: `read`; `operate`
starts, cancels and resumes runs; `decide` also answers requests. A token for an agent never has
`decide`.

Errors are problem details with a stable `kind`. Lists have a `next` that is the `cursor` of the
following page. Starts and answers take an `Idempotency-Key`.
"""
_TAGS = {
    "workflows": "What can be started.",
    "runs": "Start, follow, cancel and resume runs.",
    "review": "What a review has found and changed.",
    "inbox": "Requests to humans, and their answers.",
    "events": "What happens, as it happens and as it was recorded.",
    "spend": "What runs have cost.",
    "exports": "A whole run as one document.",
}
_PROBLEM = {
    "description": "Refused or failed; `kind` says why.",
    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
}


def describe(app: FastAPI) -> dict[str, Any]:
    """Returns the description of all routes."""
    document = get_openapi(
        title="signoff",
        version=__version__,
        summary="Durable reviews of AI work, over HTTP.",
        description=_TEXT,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
    )
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["ProblemDocument"] = ProblemDocument.model_json_schema()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
    return document
