"""Calls a workflow's `prepare` before a run starts.

Whatever goes wrong in it is raised while nothing of the run exists: no journal, no directory and
no request. So a run is either started with everything it needs, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.workflow import Workflow
from signoff.error_text import describe_error
from signoff.errors import BadHandlerResult, HandlerFailed, SignoffError, UsageError
from signoff.runtime.environment import Secrets


def prepared_params(
    workflow: Workflow, params: Mapping[str, Any], secrets: Secrets
) -> dict[str, Any]:
    """Returns what a workflow prepares for a run, to be recorded with the run's parameters."""
    if workflow.prepare is None:
        return {}
    try:
        prepared: Any = workflow.prepare(params)
    except SignoffError:
        raise
    except Exception as error:
        # The author's own code may raise anything.
        what = f"preparing workflow {workflow.name!r} raised {describe_error(error)}"
        raise HandlerFailed(what) from error
    if not isinstance(prepared, Mapping):
        kind = type(prepared).__name__
        raise BadHandlerResult(
            f"prepare of workflow {workflow.name!r} returned a {kind}, not a dict"
        )
    # A parameter that was left open, without a value of its own, may be prepared.
    if taken := sorted(name for name in prepared if params.get(name) is not None):
        raise BadHandlerResult(
            f"prepare of workflow {workflow.name!r} returned parameters that the run has already: "
            f"{', '.join(taken)}"
        )
    for name, value in prepared.items():
        if variable := secrets.name_in(value):
            raise UsageError(
                f"{name} contains the value of {variable}, which would be stored; take it out"
            )
    return dict(prepared)
