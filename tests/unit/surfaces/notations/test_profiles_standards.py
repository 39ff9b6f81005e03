from pathlib import Path

import pytest

from signoff.core.errors import UnknownName
from signoff.notation import CompileContext
from signoff.surfaces.notations.profiles import _check_standards as check_standards


def context(folder: Path, **section: object) -> CompileContext:
    return CompileContext(root=folder, agents={}, settings={"profiles": section})


def test_the_standards_of_each_profile_are_checked(tmp_path: Path) -> None:
    """Shipped profiles are ready; each names a provider of its own."""
    checks = {each["detail"]: each for each in check_standards(context(tmp_path), None, None)}

    assert all(each["ready"] for each in checks.values())
    assert checks["jpa-mt"]["name"] == "yaml-rules"
    assert checks["python-module"]["name"] == "scoped-layer-fs"


def test_the_provider_of_the_settings_is_checked_instead_of_the_profiles_own(
    tmp_path: Path,
) -> None:
    """A session uses it, too; here it does not understand the profile's configuration."""
    settings = context(tmp_path, standards_provider="yaml-rules")

    (check,) = check_standards(settings, None, "python-module")

    assert check["name"] == "yaml-rules"
    assert not check["ready"]
    assert "layer_standards" in check["detail"]


def test_only_the_profiles_with_one_provider_are_checked(tmp_path: Path) -> None:
    """A wrong key must not look like a check that passed."""
    checks = list(check_standards(context(tmp_path), "yaml-rules", None))

    assert [each["detail"] for each in checks] == ["jpa-mt"]
    with pytest.raises(UnknownName):
        list(check_standards(context(tmp_path), "yaml-rulez", None))


def test_the_standards_of_the_settings_are_checked(tmp_path: Path) -> None:
    """A team finds its mistakes before the first session, also in the name of the profile."""
    (tmp_path / "rules").mkdir()
    own = {"provider": "yaml-rules", "root": "rules"}
    settings = context(tmp_path, standards={"python-module": own, "jpa": own})

    unknown, check = check_standards(settings, None, "python-module")

    assert not unknown["ready"]
    assert "'jpa'" in unknown["detail"]
    assert (check["name"], check["ready"]) == ("yaml-rules", True)
    assert "profiles.standards.python-module" in check["detail"]
