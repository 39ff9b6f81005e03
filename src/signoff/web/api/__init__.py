"""The REST interface: the use cases as resources, under `/api/v1`."""

from __future__ import annotations

from fastapi import APIRouter

from signoff.web.api import exports, inbox, journal, review, runs, spend, start, workflows

ROUTERS: tuple[APIRouter, ...] = (
    workflows.router,
    runs.router,
    start.router,
    review.router,
    inbox.router,
    journal.router,
    spend.router,
    exports.router,
)
