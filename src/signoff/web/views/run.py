"""The page of a run, and the pages below it: findings, log, files, exports."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from signoff import plugins
from signoff.app.answering import answer_to_json, open_requests, request_line
from signoff.app.history import FollowedRun, export, load_state
from signoff.app.next_commands import next_commands, with_file
from signoff.app.project import Project
from signoff.app.runs import cancel, current_row, list_files, read_file
from signoff.app.show import logs
from signoff.core.outcome import FINAL
from signoff.core.requests import ItemState
from signoff.core.stop_reason import remedies
from signoff.errors import UnknownName
from signoff.pages.changes import ChangesView, DiffView, chosen_versions
from signoff.pages.document import Live
from signoff.pages.html import Markup, tag
from signoff.pages.parts import run_path, sentence
from signoff.pages.run import MOST_REQUESTS, RunView, finding_groups, log_lines, run_page
from signoff.pages.run_files import file_list, rendered_files
from signoff.runtime.narration import describe_answer
from signoff.runtime.store_port import RunRow
from signoff.web.callers import Operator
from signoff.web.projects import OpenProject
from signoff.web.views.frame import (
    SentForm,
    continue_run,
    events_path,
    followed_runs,
    projects_of,
    show_page,
)

MOST_LINES = 2_000
"""Lines of a log that its page shows: the latest ones."""

SANDBOX = "sandbox; default-src 'none'"
"""The policy of a document that was not made here: it may do nothing."""

router = APIRouter(include_in_schema=False)


@router.get("/runs/{name}")
def show_run(
    request: Request,
    project: OpenProject,
    name: str,
    first: Annotated[int | None, Query(alias="from")] = None,
    to: int | None = None,
    view: DiffView = DiffView.INLINE,
    done: int | None = None,
) -> Response:
    """Shows a run."""
    row = current_row(project, project.store.row(name))
    pending = open_requests(project, name)
    with followed_runs(request).look(project, row) as run:
        history = run.review
        before, after = chosen_versions(history, first, to) if history else (None, None)
        page = RunView(
            row=row,
            timeline=run.timeline,
            definition=run.definition,
            now=project.clock.now(),
            changes=ChangesView(name, before, after, view),
            history=history,
            requests=[request_line(project, line) for line in pending[:MOST_REQUESTS]],
            pending=len(pending),
            details=_details(project, row, run),
            log=list(run.log),
            remedies=_remedies(row, run),
            exports=sorted(plugins.export_paths()),
            notice=_notice(project, name, done),
        )
        parts = list(run_page(page))
    address = f"{request.url.path}{f'?{request.url.query}' if request.url.query else ''}"
    live = None if row.status in FINAL else Live(events_path(row), address)
    return show_page(request, project, name, parts, live=live, wide=True)


def _details(project: Project, row: RunRow, run: FollowedRun) -> str:
    """Returns what the notation of a run reports; a review is shown in full anyway."""
    notation = plugins.notation(str(run.definition.get("notation", "")))
    if run.review is not None or notation is None or not notation.report:
        return ""
    state = load_state(project, row).state_with_pending
    report = plugins.load(notation.report)(state, run.definition)
    return str(report.details)


def _remedies(row: RunRow, run: FollowedRun) -> list[str]:
    stop = run.timeline.state.stop_reason
    return next_commands(with_file(remedies(row.name, row.status, stop, row.due_at), row.target))


def _notice(project: Project, name: str, done: int | None) -> str:
    """Returns what an answer that was just given says, read back from the store."""
    if done is None:
        return ""
    try:
        item = project.store.item(done)
    except UnknownName:
        return ""
    if item.run != name or item.state is ItemState.OPEN:
        return ""
    return sentence(f"Request #{done}: {describe_answer(answer_to_json(item) or {})}")


@router.get("/runs/{name}/rendered")
def show_rendered(
    request: Request, project: OpenProject, name: str, version: int | None = None
) -> Response:
    """Shows the text of a review as its readers will see it."""
    row = current_row(project, project.store.row(name))
    with followed_runs(request).look(project, row) as run:
        history = run.review
        numbers = {each.number: each for each in history.versions} if history else {}
        chosen = numbers.get(version or max(numbers, default=0))
        if history is None or chosen is None:
            raise UnknownName("version", str(version or ""), map(str, numbers))
        files = {history.name_of(path): text for path, text in chosen.files.items()}
    title = f"The text of {name}, version {chosen.number}"
    parts = rendered_files(files, f"{run_path(name)}#text")
    return show_page(request, project, title, _back(name), tag("h1", title), parts)


@router.get("/runs/{name}/findings")
def show_findings(request: Request, project: OpenProject, name: str) -> Response:
    """Shows every finding of a review."""
    row = current_row(project, project.store.row(name))
    with followed_runs(request).look(project, row) as run:
        history = run.review
        found = list(finding_groups(name, history, most=None)) if history else ()
    title = f"Findings of {name}"
    heading = [_back(name), tag("h1", title)]
    return show_page(request, project, title, heading, found or tag("p", "It has no review."))


@router.get("/runs/{name}/log")
def show_log(request: Request, project: OpenProject, name: str) -> Response:
    """Shows the log of a run."""
    lines = [line for entry in logs(project, name) for line in entry.lines]
    left_out = len(lines) - MOST_LINES
    note = tag("p", f"{left_out:,} earlier lines are left out.") if left_out > 0 else None
    title = f"Log of {name}"
    heading = [_back(name), tag("h1", title), note]
    return show_page(request, project, title, heading, log_lines(lines[-MOST_LINES:]))


@router.get("/runs/{name}/files")
def show_files(request: Request, project: OpenProject, name: str) -> Response:
    """Lists the files of a run."""
    row = project.store.row(name)
    title = f"Files of {name}"
    heading = [_back(name), tag("h1", title)]
    found = file_list(name, list_files(project, row.name))
    return show_page(request, project, title, heading, found)


@router.get("/runs/{name}/files/{path:path}")
def show_file(project: OpenProject, name: str, path: str) -> Response:
    """Sends a file of a run as plain text, whatever it contains."""
    content = read_file(project, project.store.row(name).name, path)
    return Response(content, media_type="text/plain", headers={"content-security-policy": SANDBOX})


@router.get("/runs/{name}/export/{form}")
def download(project: OpenProject, name: str, form: str) -> Response:
    """Sends an export of a run, to be saved."""
    run = project.store.row(name).name
    text = "".join(export(project, form, run))
    ending = {"html": "html", "markdown": "md"}.get(form, f"{form}.json")
    headers = {
        "content-disposition": f"attachment; filename*=utf-8''{quote(run)}.{ending}",
        "content-security-policy": SANDBOX,
    }
    return Response(text.encode("utf-8", "replace"), media_type="text/plain", headers=headers)


@router.post("/runs/{name}/cancel")
async def cancel_run(request: Request, caller: Operator, name: str, form: SentForm) -> Response:
    """Cancels a run."""
    by, why = caller.name, form.one("why").strip()
    async with projects_of(request).lend(writes=True) as project:
        await cancel(project, name, f"by {by}{why and f': {why}'}")
    return RedirectResponse(run_path(name), 303)


@router.post("/runs/{name}/resume")
def resume_run(project: OpenProject, _caller: Operator, name: str) -> Response:
    """Hands a run to a worker that continues it."""
    continue_run(project, project.store.row(name).name)
    return RedirectResponse(run_path(name), 303)


def _back(name: str) -> Markup:
    return tag("p", tag("a", f"← {name}", href=run_path(name)), class_="small")
