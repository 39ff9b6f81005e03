"""Passkeys in a real browser: an authenticator signs, and nothing else can."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from signoff.app.project import open_project
from signoff.app.run_records import living_workers
from tests.acceptance.cli_project import ENVIRONMENT, PROGRAM, worker_for_server
from tests.browser import open_browser
from tests.run_stores import store_variables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.slow

MILLISECONDS = 60_000
"""How long to wait for what a page shows; the machine may be busy."""
SETTINGS = "version: 1\nagents:\n  claude: {kind: scripted, file: .signoff/script.yaml}\n"
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


class SignedProject:
    """A project whose page is served, with a run that waits for a signature."""

    def __init__(
        self, folder: Path, environment: dict[str, str], browser: Browser, link: str
    ) -> None:
        self.folder = folder
        self.environment = environment
        self.base = link.partition("/login")[0]
        self._browser = browser
        with browser.new_context() as context:
            context.new_page().goto(link)
            self._cookies: Any = context.cookies()

    def window(self) -> BrowserContext:
        """Opens a window of its own, logged in."""
        context = self._browser.new_context()
        context.set_default_timeout(MILLISECONDS)
        context.add_cookies(self._cookies)
        return context

    def json(self, *arguments: str) -> Any:
        """Returns what a command prints as JSON."""
        command = [PROGRAM, *arguments, "--json"]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True)
        return json.loads(done.stdout)

    @property
    def pending(self) -> list[int]:
        """The numbers of the pending requests."""
        return [each["number"] for each in self.json("inbox")]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedProject]:
    """One server and one browser for all tests."""
    folder = tmp_path_factory.mktemp("passkeys") / "guide"
    for name, text in {
        ".signoff/config.yaml": SETTINGS,
        ".signoff/flows/hello.yaml": FLOW,
        ".signoff/script.yaml": json.dumps(SCRIPT),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    environment = ENVIRONMENT | store_variables()
    with open_browser() as browser:
        if browser is None:
            pytest.skip("no browser is installed: make browser")
        command = [PROGRAM, "web", "--port", "0", "--json"]
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            link = json.loads(server.stdout.readline())["link"]
            with worker_for_server(folder, environment):
                yield SignedProject(folder, environment, browser, link)
        finally:
            server.kill()
            server.communicate()
            _end_workers(folder, environment)


def _end_workers(folder: Path, environment: dict[str, str]) -> None:
    with open_project(folder, environment) as project:
        for worker in living_workers(project.store):
            os.kill(worker.owner.pid, signal.SIGKILL)


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
    signed: SignedProject,
) -> None:
    """An agent that holds the login can click, script and send anything, but it cannot sign."""
    from playwright.sync_api import expect

    expect.set_options(timeout=MILLISECONDS)
    signed.json("run", ".signoff/flows/hello.yaml", "--name", "one")
    (number,) = signed.pending
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
    assert signed.pending == [number]

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


def test_a_second_passkey_is_confirmed_by_the_first(signed: SignedProject) -> None:
    """An agent that can print a link still needs the passkey that is there."""
    from playwright.sync_api import expect

    expect.set_options(timeout=MILLISECONDS)
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
