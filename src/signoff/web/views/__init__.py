"""The pages for people: one router each."""

from __future__ import annotations

from fastapi import APIRouter

from signoff.web.views import assets, home, passkeys, request, run, spend, start

ROUTERS: tuple[APIRouter, ...] = (
    assets.router,
    home.router,
    run.router,
    request.router,
    start.router,
    spend.router,
    passkeys.router,
)
"""The routers of all pages, in the order they are matched."""
