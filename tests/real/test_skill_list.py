"""The skills that a coding agent itself lists after they were installed."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from signoff.skills import discover_workflows
from signoff.surfaces.cli import main
from tests.patience import PATIENCE_SECONDS
from tests.real.vendors import KEY, Vendor
from tests.stubs.vendors.server import Say, Turn, VendorStub

pytestmark = [pytest.mark.real, pytest.mark.slow]

VARIABLES: Mapping[str, Mapping[str, str]] = {
    "claude": {"ANTHROPIC_API_KEY": KEY},
    "codex": {"CODEX_API_KEY": KEY},
    "gemini": {"GEMINI_API_KEY": KEY, "GEMINI_CLI_NO_RELAUNCH": "true"},
}
LISTED = {"gemini": r"<name>{}</name>\n    <description>{}</description>"}
"""How each program tells its model of a skill, in JSON."""


@pytest.mark.parametrize("user", [False, True], ids=["project", "user"])
def test_installed_skills_are_listed_with_their_descriptions(
    user: bool,
    vendor: Vendor,
    serve: Callable[[Turn], VendorStub],
    home: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its model chooses by them; descriptions that are too long in total are left out."""
    project = place.parent
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    assert main(["skill", "install", "--agent", vendor.name, *(["--user"] if user else [])]) == 0
    stub = serve(Say("Hello."))

    done = subprocess.run(
        command(vendor, stub.url),
        cwd=project,
        env={"HOME": str(home), "PATH": os.environ["PATH"], **VARIABLES[vendor.name]}
        | {"ANTHROPIC_BASE_URL": stub.url, "GOOGLE_GEMINI_BASE_URL": stub.url},
        input="Greet the moon.",
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    told = [json.dumps(heard.body) for heard in stub.heard if stub.wants(heard)]

    assert done.returncode == 0, done.stderr
    for name, skill in discover_workflows().items():
        description = " ".join(skill.description.split())
        assert LISTED.get(vendor.name, "- {}: {}").format(name, description) in told[0]


def command(vendor: Vendor, url: str) -> list[str]:
    """Returns how a user starts the program for one prompt, which is its standard input."""
    start = [str(vendor.program), "--model", vendor.model]
    match vendor.name:
        case "claude":
            return [*start, "-p"]
        case "codex":
            provider = f'name="stub",base_url="{url}/v1",env_key="CODEX_API_KEY"'
            options = ["-c", f'model_providers.stub={{{provider},wire_api="responses"}}']
            chosen = ["-c", 'model_provider="stub"', "--skip-git-repo-check", "-"]
            return [start[0], "exec", *start[1:], *options, *chosen]
        case _:
            return [*start, "--output-format", "json", "--skip-trust"]
