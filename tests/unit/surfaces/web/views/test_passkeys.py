"""Tests of the pages that register passkeys and have answers signed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from signoff.app.people.passkeys import read_passkeys
from signoff.app.settings.project import Project
from signoff.core.requests import Approval, Choice, ItemState
from signoff.surfaces.web.access import Access
from tests.software_authenticator import ORIGIN, SoftwareAuthenticator, register_passkey
from tests.unit.surfaces.web.page_reader import PageReader
from tests.unit.surfaces.web.views.test_request import waiting


@pytest.fixture
def human(browser: httpx.AsyncClient) -> httpx.AsyncClient:
    """A browser that has opened the page under its host name."""
    browser.base_url = httpx.URL(ORIGIN)
    browser.headers["origin"] = ORIGIN
    return browser


async def post(
    client: httpx.AsyncClient, address: str, fields: Mapping[str, str]
) -> httpx.Response:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return await client.post(address, content=urlencode(fields), headers=headers)


async def fields_of(client: httpx.AsyncClient, number: int, **more: str) -> dict[str, str]:
    page = PageReader((await client.get(f"/requests/{number}")).text)
    return {"digest": page.fields["digest"], **more}


async def create(
    client: httpx.AsyncClient, key: str, authenticator: SoftwareAuthenticator
) -> dict[str, str]:
    """Returns the fields of the form that registers a passkey."""
    options = (await post(client, "/passkeys/new/options", {"key": key})).json()["options"]
    return {"key": key, "created": json.dumps(authenticator.create(options))}


async def test_an_approval_is_signed_on_its_page(
    project: Project, human: httpx.AsyncClient
) -> None:
    """The whole way of a signature: the form, the challenge, the form with the signature."""
    authenticator = SoftwareAuthenticator()
    register_passkey(project.home, authenticator, "laptop")
    await waiting(project, Approval("Ship?", "the text", presence=True))
    fields = await fields_of(human, 1, action="approve", text="two\r\nlines")

    asked = await post(human, "/requests/1/challenge", fields)
    reply = json.dumps(authenticator.sign(asked.json()["options"]))
    sent = await post(human, "/requests/1", {**fields, "assertion": reply})

    assert sent.status_code == 303
    (item,) = project.store.items(state=(ItemState.ANSWERED,))
    assert json.loads(item.answer or "{}")["presence"]["passkey"] == "laptop"
    page = await human.get("/requests/1")
    assert "signed with passkey laptop" in page.text


async def test_a_form_without_a_signature_is_refused_and_keeps_what_was_typed(
    project: Project, human: httpx.AsyncClient
) -> None:
    """A browser without scripts, or a script that skips ours, must not lose the words either."""
    await waiting(project, Approval("Ship?", "the text", presence=True))

    for assertion in ("", "nonsense", "[]", '{"id": 7}', "{" * 10_000):
        fields = await fields_of(human, 1, action="approve", text="typed", assertion=assertion)
        refused = await post(human, "/requests/1", fields)
        assert refused.status_code == 422
        assert "typed" in refused.text

    page = (await human.get("/requests/1")).text
    assert "<noscript>" in page
    assert project.store.items(state=(ItemState.ANSWERED,)) == []


async def test_rejecting_asks_for_no_signature(project: Project, human: httpx.AsyncClient) -> None:
    """The script asks the server first, so it never bothers an authenticator for nothing."""
    await waiting(project, Approval("Ship?", "the text", presence=True))
    fields = await fields_of(human, 1, action="reject")

    asked = await post(human, "/requests/1/challenge", fields)
    sent = await post(human, "/requests/1", fields)

    assert asked.json() == {"options": None}
    assert sent.status_code == 303


async def test_a_page_says_why_it_cannot_be_signed(
    project: Project, browser: httpx.AsyncClient
) -> None:
    """Passkeys work under a host name, and only if there is one."""
    await waiting(project, Choice("Go?", ["yes", "no"], presence=True))
    fields = await fields_of(browser, 1, value="yes")

    by_number = await post(browser, "/requests/1/challenge", fields)
    browser.base_url = httpx.URL(ORIGIN)
    browser.headers["origin"] = ORIGIN
    none = await post(browser, "/requests/1/challenge", fields)
    stale = await post(browser, "/requests/1/challenge", {**fields, "digest": "0" * 64})

    assert (by_number.status_code, none.status_code, stale.status_code) == (422, 422, 422)
    assert "http://localhost:8717/requests/1" in by_number.json()["problem"]
    assert "signoff passkeys add" in none.json()["problem"]


async def test_another_host_or_port_in_the_request_changes_nothing(
    project: Project, human: httpx.AsyncClient
) -> None:
    """The header that names the host is written by the caller; the port of the socket is not."""
    authenticator = SoftwareAuthenticator()
    register_passkey(project.home, authenticator, "laptop")
    await waiting(project, Approval("Ship?", "the text", presence=True))
    fields = await fields_of(human, 1, action="approve")
    asked = await post(human, "/requests/1/challenge", fields)
    elsewhere = "http://localhost:9999"
    reply = json.dumps(authenticator.sign(asked.json()["options"], elsewhere))
    human.headers.update({"host": "localhost:9999", "origin": elsewhere})

    sent = await post(human, "/requests/1", {**fields, "assertion": reply})

    assert sent.status_code == 422
    assert project.store.items(state=(ItemState.ANSWERED,)) == []


async def test_a_passkey_is_registered_with_a_link_from_the_terminal(
    project: Project, human: httpx.AsyncClient, access: Access
) -> None:
    """The first one needs nothing else, and the link works once."""
    key, authenticator = access.new_registration("laptop"), SoftwareAuthenticator()
    page = await human.get("/passkeys/new", params={"key": key})
    fields = await create(human, key, authenticator)

    confirmation = await post(human, "/passkeys/new/confirmation", fields)
    added = await post(human, "/passkeys/new", fields)
    again = await post(human, "/passkeys/new", fields)

    assert "laptop" in page.text
    assert confirmation.json() == {"options": None}
    assert (added.status_code, again.status_code) == (303, 403)
    (found,) = read_passkeys(project.home.passkeys)
    assert (found.name, found.owner, found.rp_id) == ("laptop", "ann", "localhost")
    assert found.fingerprint[:12] in (await human.get("/passkeys")).text


async def test_another_passkey_has_to_be_confirmed_by_the_first(
    project: Project, human: httpx.AsyncClient, access: Access
) -> None:
    """An agent with a shell can make a link, but it cannot sign for the human's passkey."""
    first, second = SoftwareAuthenticator(), SoftwareAuthenticator()
    register_passkey(project.home, first, "laptop")
    alone, key = access.new_registration("alone"), access.new_registration("phone")
    unconfirmed = await create(human, alone, SoftwareAuthenticator())
    fields = await create(human, key, second)

    refused = await post(human, "/passkeys/new", unconfirmed)
    asked = await post(human, "/passkeys/new/confirmation", fields)
    reply = json.dumps(first.sign(asked.json()["options"]))
    added = await post(human, "/passkeys/new", {**fields, "confirmation": reply})

    assert (refused.status_code, added.status_code) == (422, 303)
    assert [each.name for each in read_passkeys(project.home.passkeys)] == ["laptop", "phone"]


@pytest.mark.parametrize("key", ["", "guessed", "the login link itself"])
async def test_a_login_alone_registers_nothing(
    project: Project, human: httpx.AsyncClient, access: Access, key: str
) -> None:
    """An agent that holds the login must not be able to let itself in."""
    key = access.new_link("ann") if key.startswith("the login") else key
    invented = {"rp": {"id": "localhost"}, "challenge": "AAAA"}
    created = json.dumps(SoftwareAuthenticator().create(invented))

    page = await human.get("/passkeys/new", params={"key": key})
    asked = await post(human, "/passkeys/new/options", {"key": key})
    sent = await post(human, "/passkeys/new", {"key": key, "created": created})

    assert (page.status_code, asked.status_code, sent.status_code) == (403, 422, 403)
    assert not project.home.passkeys.exists()


async def test_a_passkey_created_elsewhere_is_not_registered(
    project: Project, human: httpx.AsyncClient, access: Access
) -> None:
    """Another page of this machine could create one for localhost and send it here."""
    key, authenticator = access.new_registration("laptop"), SoftwareAuthenticator()
    options = (await post(human, "/passkeys/new/options", {"key": key})).json()["options"]
    lies: list[dict[str, Any]] = [
        authenticator.create(options, "http://localhost:9999"),
        authenticator.create({**options, "challenge": "AAAA"}),
        replace(authenticator, flags=1).create(options),
    ]

    for created in lies:
        refused = await post(human, "/passkeys/new", {"key": key, "created": json.dumps(created)})
        assert refused.status_code == 422

    assert not project.home.passkeys.exists()
