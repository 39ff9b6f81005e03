"""What only some modules may import: libraries behind one module, packages behind a port."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tests.architecture.tree import Module, planted, product

DOORS: Mapping[str, Sequence[str]] = {
    # The journal and printed JSON have one writer each.
    "orjson": ("core.codec", "documents.control_characters"),
    # Extras: a program without them has to start.
    "markdown_it": ("views.pages.markdown",),
    "prometheus_client": ("views.metrics",),
    "webauthn": ("app.people.passkeys",),
    # Notations know no command line. A profile adds its commands to a group (its protocol).
    "click": ("surfaces.", "profiles.factories"),
    # The user's database, behind the port of contracts; `contracts` exports its client.
    "signoff.contracts.guarded_db": (
        "contracts",
        "contracts.database",
        "contracts.guarded_db.",
        "surfaces.notations.database",
    ),
}
"""Who may import what. A name with a dot at its end is a package with everything in it."""


def test_only_the_named_modules_import_what_is_behind_a_door() -> None:
    """A second user of a library, or of a port's inside, makes it part of everything."""
    assert list(trespassers(product())) == []


def test_every_door_is_used() -> None:
    """A door that nobody goes through would let somebody else in later."""
    users = {
        (door, user)
        for module in product()
        for door in DOORS
        for user in DOORS[door]
        if _is_allowed(module.name, user) and any(_is_of(name, door) for name in _imports(module))
    }

    assert users == {(door, user) for door in DOORS for user in DOORS[door]}


def test_a_trespasser_is_found() -> None:
    """By an import inside a function, too."""
    text = "def f():\n    from webauthn import verify\n"

    assert list(trespassers(planted(app__runs=text))) == ["signoff.app.runs imports webauthn"]


def trespassers(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        names = set(_imports(module))
        for door, users in DOORS.items():
            is_allowed = any(_is_allowed(module.name, user) for user in users)
            if not is_allowed and any(_is_of(name, door) for name in names):
                yield f"{module.name} imports {door}"


def _is_allowed(module: str, user: str) -> bool:
    name = f"signoff.{user}"
    return f"{module}.".startswith(name) if user.endswith(".") else module == name


def _is_of(name: str, door: str) -> bool:
    return f"{name}.".startswith(f"{door}.")


def _imports(module: Module) -> Iterator[str]:
    for node in module.nodes:
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(source), names=aliases):
                yield from (f"{source}.{alias.name}" for alias in aliases)
