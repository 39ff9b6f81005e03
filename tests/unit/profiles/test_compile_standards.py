from pathlib import Path
from typing import Any

import pytest

from signoff.errors import ProviderError, UnknownName
from signoff.profiles.compile import StandardsSource
from signoff.profiles.settings import ProfilesSection
from tests.unit.profiles.session_fixture import ProbeProfile


class Layered(ProbeProfile):
    """Has standards of its own."""

    def get_standards_config(self, context: Any) -> dict[str, Any]:
        return {"provider": "yaml-rules", "root": str(context["subject"])}


def source(**section: Any) -> StandardsSource:
    settings = ProfilesSection.of({"profiles": section})
    return StandardsSource.of("probe", Layered(), settings, {"subject": "rules"})


def test_without_settings_a_profile_says_which_standards_it_has() -> None:
    """A shipped profile works as it is."""
    found = source(standards={"other": {"root": "x"}})

    assert found == StandardsSource("yaml-rules", {"provider": "yaml-rules", "root": "rules"})


def test_the_settings_replace_the_standards_of_a_profile() -> None:
    """A team uses a shipped profile with its own rules, and needs no subclass."""
    found = source(standards={"probe": {"root": "team"}})

    assert found == StandardsSource("scoped-layer-fs", {"root": "team"}, "profiles.standards.probe")


def test_the_provider_of_one_profile_beats_that_of_all() -> None:
    """The setting for one profile is the more specific one."""
    every = source(standards_provider="house", standards={"probe": {"root": "team"}})
    own = source(standards_provider="house", standards={"probe": {"provider": "yaml-rules"}})

    assert (every.provider, own.provider) == ("house", "yaml-rules")


def test_mistakes_in_the_settings_are_reported_with_the_setting(tmp_path: Path) -> None:
    """The user has to know that the mistake is not the profile's."""
    wrong = source(standards={"probe": {"provider": "yaml-rules", "rooot": "x"}})

    with pytest.raises(ProviderError, match=r"profiles\.standards\.probe: .*'rooot'.*root"):
        wrong.create(tmp_path)
    with pytest.raises(ProviderError, match=r"^configuration"):
        source().create(tmp_path)
    with pytest.raises(UnknownName, match="yaml-rules"):
        source(standards={"probe": {"provider": "nowhere"}}).create(tmp_path)
