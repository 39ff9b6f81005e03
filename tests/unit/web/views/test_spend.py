"""Tests of the page about what runs have cost."""

import httpx


async def test_spend_is_shown_for_a_period(browser: httpx.AsyncClient) -> None:
    """Periods that no calendar has are refused."""
    assert "No agent was asked" in (await browser.get("/spend?days=7")).text
    assert (await browser.get("/spend?days=-1")).status_code == 422
