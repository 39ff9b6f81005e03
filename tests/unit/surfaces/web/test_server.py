import httpx
import pytest

from signoff.surfaces.web.access import Access
from signoff.surfaces.web.server import listen, listen_as_localhost


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


async def test_a_login_link_sets_a_strict_cookie_and_opens_the_page(
    stranger: httpx.AsyncClient, access: Access
) -> None:
    """The whole of it: open the link, then read."""
    answer = await stranger.get(f"/login?key={access.new_link('ann')}&to=/runs/first")

    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/first")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert (await stranger.get("/api/v1/runs")).status_code == 200


async def test_a_used_link_logs_no_one_in(stranger: httpx.AsyncClient, access: Access) -> None:
    """It may be in a log or a history by then."""
    link = f"/login?key={access.new_link('ann')}"
    await stranger.get(link)
    stranger.cookies.clear()

    again = await stranger.get(link)

    assert again.status_code == 401
    assert "set-cookie" not in again.headers


async def test_a_used_link_opens_the_page_for_who_is_logged_in(
    stranger: httpx.AsyncClient, access: Access
) -> None:
    """It is the first entry in the history of the browser."""
    link = f"/login?key={access.new_link('ann')}"
    await stranger.get(link)

    again = await stranger.get(link)

    assert (again.status_code, again.headers["location"]) == (303, "/")
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "x", "/a\r\nx: y"]
)
async def test_a_login_never_leads_to_another_server(
    stranger: httpx.AsyncClient, access: Access, to: str
) -> None:
    """A link that logs in and then leads away would make every fake page look right."""
    answer = await stranger.get("/login", params={"key": access.new_link("ann"), "to": to})

    assert answer.headers["location"] == "/"


async def test_logging_out_ends_the_session(browser: httpx.AsyncClient) -> None:
    """On the server too: a copied cookie must not live on."""
    answer = await browser.post("/logout")

    assert answer.status_code == 303
    assert (await browser.get("/api/v1/runs")).status_code == 401
