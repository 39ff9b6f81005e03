"""The skills that a coding agent itself lists after they were installed."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signoff.cli import main
from signoff.skills import discover_workflows
from tests.patience import PATIENCE_SECONDS
from tests.real.vendors import CLAUDE, KEY, Vendor
from tests.stubs.vendors.server import Say, Turn, VendorStub

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.parametrize("vendor", [CLAUDE], ids=["claude"], indirect=True)
def test_installed_skills_are_listed_with_their_descriptions(
    vendor: Vendor,
    serve: Callable[[Turn], VendorStub],
    home: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its model chooses by them; descriptions that are too long in total are left out."""
    monkeypatch.chdir(place)
    assert main(["skill", "install"]) == 0
    stub = serve(Say("Hello."))

    events = [*events_of(vendor, stub.url, place, home)]
    told = json.dumps([heard.body for heard in stub.heard if stub.wants(heard)])

    skills = discover_workflows()
    first = next(event for event in events if event.get("subtype") == "init")
    assert set(skills) <= set(first["skills"])
    for name, skill in skills.items():
        assert f"- {name}: {' '.join(skill.description.split())}" in told


def events_of(vendor: Vendor, url: str, place: Path, home: Path) -> list[dict[str, Any]]:
    """Has the program answer a prompt in a project; returns what it reports."""
    done = subprocess.run(
        [str(vendor.program), "-p", "Greet the moon.", "--model", vendor.model,
         "--output-format", "stream-json", "--verbose"],
        cwd=place,
        env={"HOME": str(home), "PATH": os.defpath, "ANTHROPIC_BASE_URL": url,
             "ANTHROPIC_API_KEY": KEY},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
