"""The parts of compose.yaml and the Dockerfile that can be checked without Docker.

Every command in them is a real one with valid options, every variable is one that is read, and
the page is not served to other machines by accident.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML

from signoff.surfaces.cli.entry import signoff
from tests.acceptance.cli_project import CliProject

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = YAML(typ="safe").load(ROOT / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if each.get("image") == "signoff"}


def parse(arguments: list[str]) -> click.Context:
    """Parses a command line as the program does, without running it."""
    command: click.Command = signoff
    context = command.make_context("signoff", list(arguments))
    while isinstance(command, click.Group):
        _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        command = found
        context = command.make_context(command.name, rest, parent=context)
    return context


@pytest.mark.parametrize("name", OURS)
def test_every_command_of_ours_exists_with_its_options(name: str) -> None:
    """A renamed option would stop the containers at their start."""
    parse(OURS[name]["command"])
    health = OURS[name].get("healthcheck")
    if health is not None:
        assert health["test"][:2] == ["CMD", "signoff"]
        parse(health["test"][2:])


def test_no_secret_is_written_down() -> None:
    """The file is committed; nothing starts until a password was chosen."""
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            if "PASSWORD" in variable:
                assert value.startswith("${POSTGRES_PASSWORD:?")


def test_the_page_is_refused_without_a_token(project: CliProject) -> None:
    """The container listens on all addresses, so anyone who reaches it is asked for one."""
    project.signoff("init")
    command = OURS["page"]["command"]

    refused = project.signoff(*command)

    options = parse(command).params
    assert (options["host"], options["hosts"]) == ("0.0.0.0", ("localhost",))
    assert refused.returncode == 2
    assert "create a token first" in refused.stderr
    assert all(port.startswith("127.0.0.1:") for port in SERVICES["page"]["ports"])


def test_the_image_has_the_extras_that_the_services_use() -> None:
    """Without one of them a container ends with the command that installs it."""
    lines = (ROOT / "Dockerfile").read_text()
    (listed,) = re.findall(r"\$wheel\[([a-z,]+)\]", lines)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]

    assert {"postgres", "temporal", "web"} <= set(listed.split(",")) <= extras.keys()
    assert 'ENTRYPOINT ["signoff"]' in lines
    (python,) = set(re.findall(r"^FROM (\S+)", lines, re.MULTILINE))
    assert python.startswith("python:3.")
    assert re.search(r"^USER signoff$", lines, re.MULTILINE)


def test_images_of_others_have_exact_versions() -> None:
    """A tag that moves is another program tomorrow, and nobody has tested it."""
    named = re.findall(
        r"^\s*(?:FROM|image:) (\S+)",
        (ROOT / "Dockerfile").read_text() + (ROOT / "compose.yaml").read_text(),
        re.MULTILINE,
    )
    others = [image for image in named if image != "signoff"]

    assert len(others) == 4
    assert [each for each in others if not re.search(r":\d+\.\d+", each)] == []
