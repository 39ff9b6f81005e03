"""Passkeys in a real browser: an authenticator signs, and nothing else can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.served_project import ServedProject, served_project

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

FLOW = """
goal: Say hello.
constraints:
  inline: {short: Say it in few words.}
workflow:
  - {step: generate, name: write, agent: claude}
  - {step: critique, name: review, agent: claude}
  - {step: adjudicate, name: judge, agent: policy}
  - {step: sign_off, name: approval, presence: true}
"""
SCRIPT = {
    "version": 1,
    "rules": [
        {"step": "write", "text": "Hello."},
        {"step": "review", "json": {"overall": "PASS", "issues": []}},
    ],
}
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "usb",
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
FORGED = {
    "nothing": "",
    "nonsense": "yes, I am here",
    "credential": '{"id": "AAAA", "rawId": "AAAA", "type": "public-key", "response": {}}',
}


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProject]:
    """One server and one browser for all tests."""
    files = {".signoff/flows/hello.yaml": FLOW, ".signoff/script.yaml": json.dumps(SCRIPT)}
    with served_project(tmp_path_factory.mktemp("passkeys") / "guide", files) as project:
        yield project


def pending(project: ServedProject) -> list[int]:
    """Returns the numbers of the pending requests."""
    return [each["number"] for each in project.json("inbox")]


class VirtualKeys:
    """The authenticators of a page, whose user is verified, and touches what is enabled."""

    def __init__(self, page: Page) -> None:
        self._client = page.context.new_cdp_session(page)
        self._client.send("WebAuthn.enable")

    def plug_in(self) -> str:
        """Adds an authenticator and returns its id."""
        options = {"options": AUTHENTICATOR}
        added = self._client.send("WebAuthn.addVirtualAuthenticator", options)
        return str(added["authenticatorId"])

    def touch(self, identity: str, *, enabled: bool) -> None:
        """Says whether the user touches an authenticator when it is asked."""
        options = {"authenticatorId": identity, "enabled": enabled}
        self._client.send("WebAuthn.setAutomaticPresenceSimulation", options)


def test_an_authenticator_signs_and_the_same_browser_without_it_cannot(
    signed: ServedProject,
) -> None:
    """An agent that holds the login can click, script and send anything, but it cannot sign."""
    from playwright.sync_api import expect

    signed.json("run", ".signoff/flows/hello.yaml", "--name", "one")
    (number,) = pending(signed)
    with_key, without = signed.window(), signed.window()
    human, agent = with_key.new_page(), without.new_page()

    # Registration takes a link from the terminal and an authenticator.
    VirtualKeys(human).plug_in()
    human.goto(signed.json("passkeys", "add", "laptop")["link"])
    human.get_by_role("button", name="Create passkey").click()
    expect(human.get_by_role("cell", name="laptop")).to_be_visible()

    # The same browser and login without the authenticator: a click, and forged forms.
    agent.goto(f"{signed.base}/requests/{number}")
    with agent.expect_response("**/challenge") as challenge:
        agent.get_by_role("button", name="Approve").click()
    assert challenge.value.json()["options"]["rpId"] == "localhost"
    refused = {name: _forge(agent, number, text) for name, text in FORGED.items()}
    assert refused == dict.fromkeys(FORGED, 422)
    assert pending(signed) == [number]

    # With it, the human signs what the page shows.
    human.goto(f"{signed.base}/requests/{number}")
    human.get_by_label("Comment").fill("two\nlines")
    human.get_by_role("button", name="Approve").click()
    human.wait_for_url("**/runs/one?done=*")
    while "approved" not in human.locator("#status").inner_text():
        human.reload()

    (check,) = signed.json("passkeys", "verify", "one")
    assert (check["passkey"], check["required"], check["problem"]) == ("laptop", True, "")
    with_key.close()
    without.close()


def test_a_second_passkey_is_confirmed_by_the_first(signed: ServedProject) -> None:
    """An agent that can print a link still needs the passkey that is there."""
    from playwright.sync_api import expect

    window = signed.window()
    page = window.new_page()
    keys = VirtualKeys(page)
    first = keys.plug_in()
    for name in (each["name"] for each in signed.json("passkeys", "list")):
        signed.json("passkeys", "remove", name)
    page.goto(signed.json("passkeys", "add", "desk")["link"])
    page.get_by_role("button", name="Create passkey").click()
    page.wait_for_url("**/passkeys")
    page.goto(signed.json("passkeys", "add", "travel")["link"])

    # The first authenticator has a passkey already, so another one has to be plugged in.
    page.get_by_role("button", name="Create passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("has a passkey already")
    keys.touch(first, enabled=False)
    second = keys.plug_in()
    page.get_by_role("button", name="Create passkey").click()
    confirm = page.get_by_role("button", name="Confirm with a passkey")
    expect(confirm).to_be_visible()
    # A touch of the wrong one would end the request, whichever answers first.
    keys.touch(second, enabled=False)
    keys.touch(first, enabled=True)
    confirm.click()
    page.wait_for_url("**/passkeys")

    (travel,) = [e for e in signed.json("passkeys", "list") if e["name"] == "travel"]
    assert travel["confirmation"]["passkey"] == "desk"
    window.close()


def _forge(page: Page, number: int, assertion: str) -> int:
    """Sends the form of the page from a script, with something in place of a signature."""
    script = """async ([number, assertion]) => {
        const fields = new URLSearchParams(new FormData(document.querySelector("form.answer")));
        fields.set("value", "approve");
        fields.set("assertion", assertion);
        const sent = await fetch(`/requests/${number}`, {method: "POST", body: fields});
        return sent.status;
    }"""
    return int(page.evaluate(script, [number, assertion]))
