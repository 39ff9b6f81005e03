import httpx
import pytest

from signoff.web.server import listen, listen_as_localhost


async def test_static_files_are_asked_for_once(stranger: httpx.AsyncClient) -> None:
    """A page that reloads them every time is slow."""
    first = await stranger.get("/static/favicon.svg")

    again = await stranger.get(
        "/static/favicon.svg", headers={"if-none-match": first.headers["etag"]}
    )

    assert (first.status_code, again.status_code) == (200, 304)
    assert first.headers["cache-control"] == "no-cache"


async def test_errors_are_documents_for_programs_and_pages_for_people(
    browser: httpx.AsyncClient,
) -> None:
    """Each has to understand what went wrong."""
    document = await browser.get("/api/v1/runs/missing")
    page = await browser.get("/missing")

    assert (document.status_code, page.status_code) == (404, 404)
    assert document.headers["content-type"] == "application/problem+json"
    assert document.json()["kind"] == "UnknownName"
    assert page.headers["content-type"].startswith("text/html")


def test_no_other_program_gets_what_is_sent_to_localhost() -> None:
    """Browsers try `::1` first: a program that has the port there would get the login links."""
    try:
        other = listen("::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    port = other.getsockname()[1]

    with other, pytest.raises(OSError, match="in use"):
        listen_as_localhost(port)

    (own,) = listen_as_localhost(port)
    own.close()
