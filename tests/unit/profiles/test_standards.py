from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core.errors import ProviderError
from signoff.profiles import StandardsProviderFactory
from signoff.profiles.standards import ScopedLayerStandards

LAYERS = {
    "_universal": ["java.md", "naming.md"],
    "entity": ["entity.md", "naming.md"],
    "repository": ["repository.md"],
    "none": [],
}
SCOPES = {
    "domain": {"layers": ["entity"]},
    "full": {"layers": ["repository", "entity"]},
    "repository": {"layers": ["repository"]},
    "bare": {"layers": ["none"]},
}


def provider(folder: Path, **changes: Any) -> ScopedLayerStandards:
    root = folder / "standards"
    root.mkdir(exist_ok=True)
    for name in ("java", "naming", "entity", "repository"):
        (root / f"{name}.md").write_text(f"Rules for {name}.\n\n")
    config = {"root": str(root), "scopes": SCOPES, "layer_standards": LAYERS} | changes
    return ScopedLayerStandards({key: value for key, value in config.items() if value is not None})


@pytest.mark.parametrize(
    ("scope", "files"),
    [
        ("domain", ["java", "naming", "entity"]),
        ("full", ["java", "naming", "repository", "entity"]),
        ("repository", ["java", "naming", "repository"]),
        ("bare", ["java", "naming"]),
    ],
)
def test_a_scope_gets_the_universal_files_and_those_of_its_layers(
    tmp_path: Path, scope: str, files: list[str]
) -> None:
    """Rules of another layer would be followed where they do not belong."""
    bundle = provider(tmp_path).create_bundle({"scope": scope})

    assert bundle == "\n".join(f"--- {name}.md ---\nRules for {name}.\n" for name in files)


def test_the_configuration_may_name_the_scope(tmp_path: Path) -> None:
    """The profile's field of the context may have another name."""
    standards = provider(tmp_path, scope="repository")

    assert "--- repository.md ---" in standards.create_bundle({"scope": "domain"})


@pytest.mark.parametrize("context", [{"scope": "domian"}, {"scope": ""}, {}])
def test_an_unknown_scope_lists_the_known_ones(tmp_path: Path, context: Mapping[str, Any]) -> None:
    """Without standards the session would continue and produce code against them."""
    with pytest.raises(ValueError, match="valid: bare, domain, full, repository"):
        provider(tmp_path).create_bundle(context)


def test_every_missing_file_is_named(tmp_path: Path) -> None:
    """A file that vanished must not vanish from the standards."""
    standards = provider(tmp_path)
    for name in ("java", "entity"):
        (tmp_path / "standards" / f"{name}.md").unlink()

    with pytest.raises(ProviderError) as error:
        standards.create_bundle({"scope": "domain"})

    assert "java.md: does not exist" in str(error.value)
    assert "entity.md: does not exist" in str(error.value)


@pytest.mark.parametrize(
    "name", ["../secret.md", "/etc/hostname", "link.md", "sub/../../secret.md"]
)
def test_a_file_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    """The bundle is sent to providers."""
    standards = provider(tmp_path, layer_standards=LAYERS | {"entity": [name]})
    (tmp_path / "secret.md").write_text("password")
    (tmp_path / "standards" / "link.md").symlink_to(tmp_path / "secret.md")

    with pytest.raises(ProviderError, match="outside the folder"):
        standards.create_bundle({"scope": "domain"})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"root": None}, "root is missing"),
        ({"root": "gone"}, "does not exist"),
        ({"scopes": None}, "scopes is missing"),
        ({"layer_standards": None}, "layer_standards is missing"),
        ({"layers": {}}, "unknown key 'layers'"),
        ({"scopes": {"a": {"layers": ["entty"]}}}, "unknown layers entty; valid: _universal"),
        ({"scopes": {"a": {"layer": ["entity"]}}}, "unknown key 'layer'"),
        ({"layer_standards": {"entity": "entity.md"}}, "layer_standards"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_before_anything_is_read(
    tmp_path: Path, changes: Mapping[str, Any], why: str
) -> None:
    """The author of a profile finds out at the first session."""
    standards = provider(tmp_path, **changes)

    with pytest.raises(ProviderError, match=why):
        standards.validate()
    with pytest.raises(ProviderError, match=why):
        standards.create_bundle({"scope": "domain"})


def test_an_empty_configuration_gives_an_empty_bundle() -> None:
    """A profile may have no standards."""
    standards = StandardsProviderFactory.create("scoped-layer-fs")

    standards.validate()
    assert standards.create_bundle({}) == ""


def test_reading_ends_at_the_time_limit(tmp_path: Path) -> None:
    """A folder on a network may hang, and the session with it."""
    with pytest.raises(ProviderError, match=r"took more than -1 s"):
        provider(tmp_path).create_bundle({"scope": "domain"}, response_timeout=-1)
