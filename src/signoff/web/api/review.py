"""What a review has found and changed: findings, diffs, artifacts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request

from signoff.app.history import FollowedRuns, artifact, changes, select_findings, without_review
from signoff.app.project import Project
from signoff.core.severity import Severity
from signoff.core.words import Label, read_labels
from signoff.review.history import ReviewHistory, change_to_json, finding_to_json
from signoff.runtime.store_port import RunRow
from signoff.web.api.documents import ArtifactDocument, ChangeList, FindingPage
from signoff.web.api.prefix import API
from signoff.web.api.runs import RunName
from signoff.web.projects import OpenProject

Round = Annotated[int | None, Query(ge=1, le=1_000_000)]

router = APIRouter(prefix=API, tags=["review"])


@router.get("/runs/{run}/findings", operation_id="list_findings")
def list_findings(
    request: Request,
    project: OpenProject,
    run: RunName,
    severity: Annotated[list[Severity] | None, Query(description="Only these.")] = None,
    status: Annotated[
        list[Literal["open"] | Label] | None,
        Query(description="Only these; `open` is all that are open."),
    ] = None,
    constraint: Annotated[list[str] | None, Query(description="Only of these.")] = None,
) -> FindingPage:
    """List the findings of a review and what became of each, those that block first."""
    with _review(request, project, run) as (_, history):
        found = select_findings(
            history, severity or (), read_labels(status or ()), constraint or ()
        )
        documents = [finding_to_json(history, each) for each in found]
    return FindingPage.model_validate({"findings": documents})


@router.get("/runs/{run}/diffs", operation_id="list_diffs")
def list_diffs(
    request: Request,
    project: OpenProject,
    run: RunName,
    round: Annotated[Round, Query(description="Only what the fixes of this round changed.")] = None,  # noqa: A002  # the name of the parameter
    first: Annotated[Round, Query(alias="from", description="From what it reviewed.")] = None,
    last: Annotated[Round, Query(alias="to", description="To what it reviewed.")] = None,
) -> ChangeList:
    """Show what each round changed, or with `from` or `to` the changes between two versions."""
    with _review(request, project, run) as (row, history):
        pairs = changes(history, row.name, round, first, last)
        documents = [change_to_json(history, *pair) for pair in pairs]
    return ChangeList.model_validate({"changes": documents})


@router.get("/runs/{run}/artifact", operation_id="get_artifact")
def get_artifact(
    request: Request,
    project: OpenProject,
    run: RunName,
    round: Annotated[Round, Query(description="The version that this round reviewed.")] = None,  # noqa: A002  # the name of the parameter
) -> ArtifactDocument:
    """Get the artifact: the version that passed, else the best reviewed one, else the latest."""
    with _review(request, project, run) as (row, history):
        version = artifact(history, row.name, round)
        files = {history.name_of(path): text for path, text in version.files.items()}
        passed = history.passed and version == history.result
        approved_by = history.approved_by if passed else ""
    return ArtifactDocument(
        run=row.name,
        version=version.number,
        passed=passed,
        approved_by=approved_by or None,
        files=files,
    )


@contextmanager
def _review(request: Request, project: Project, run: str) -> Iterator[tuple[RunRow, ReviewHistory]]:
    """Lends the history of a run's review, which is kept while someone asks for it."""
    runs: FollowedRuns = request.app.state.followed
    row = project.store.row(run)
    with runs.look(project, row) as followed:
        if followed.review is None:
            raise without_review(row)
        yield row, followed.review
