"""No code outside an agent's module decides by the name of an agent."""

from pathlib import Path

from signoff import plugins

SOURCE = Path(__file__).parents[2] / "src" / "signoff"
PACKAGES = ("app", "flows", "contracts", "review", "runtime", "cli")


def test_no_code_depends_on_the_name_of_an_agent() -> None:
    """Agents of plug-ins must work like built-in ones; code has to check capabilities."""
    names = {f'"{kind}"' for kind in plugins.AGENT_KINDS}
    found = [
        f"{package}/{file.name}: {line.strip()}"
        for package in PACKAGES
        for file in (SOURCE / package).rglob("*.py")
        for line in file.read_text("utf-8").splitlines()
        if any(f"{operator} {name}" in line for name in names for operator in ("==", "!=", "in"))
    ]

    assert found == []
