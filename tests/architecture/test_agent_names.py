"""No code outside an agent's module decides by the name of an agent."""

from pathlib import Path

import pytest

from signoff import plugins

SOURCE = Path(__file__).parents[2] / "src" / "signoff"


@pytest.mark.parametrize("package", ["app", "flows", "contracts", "review", "runtime", "cli"])
def test_no_agent_is_told_apart_by_its_name(package: str) -> None:
    """A kind of another package would be treated as the lesser one; capabilities decide."""
    names = {f'"{kind}"' for kind in plugins.AGENT_KINDS}
    found = [
        f"{file.name}: {line.strip()}"
        for file in (SOURCE / package).rglob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if any(f"{operator} {name}" in line for name in names for operator in ("==", "!=", "in"))
    ]

    assert found == []
