from pathlib import Path

import pytest

from signoff.profiles.profile_source import UNCLEAR, SourceReading, mentions, read_source
from tests.unit.profiles.local_profiles import METHODS, profile_source

GREETING = SourceReading("greeting", "greets someone")


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "source",
    [
        profile_source(),
        profile_source("NAME", first="NAME = 'greeting'"),
        profile_source(first="import json\nimport re\n\nPATTERN = re.compile('x')"),
        profile_source().replace("return {", "return METADATA\n        x = {")
        + "\nMETADATA = {'name': 'greeting', 'description': 'greets someone'}\n",
        profile_source().replace("return {", "return {**super().get_metadata(), "),
    ],
)
def test_the_name_is_read_without_importing(tmp_path: Path, source: str) -> None:
    """Listing hundreds of profiles must not import them."""
    assert read_source(written(tmp_path / "greeting.py", source)) == GREETING


@pytest.mark.parametrize(
    "source",
    [
        profile_source("'gree' + 'ting'"),
        profile_source(first="raise RuntimeError('boom')"),
        profile_source(first="print('loaded')"),
        profile_source(first="import no_such_package_anywhere"),
        profile_source(first="from signoff.profiles import NoSuchName"),
        profile_source(methods=METHODS.replace("process_review_response", "other")),
        profile_source().replace('"description"', '**OTHER, "description"'),
        profile_source().replace("def register(cli_group)", "def registered(cli_group)"),
        profile_source().replace("return Greeting", "return make()"),
    ],
)
def test_a_source_that_does_anything_unusual_reveals_nothing(tmp_path: Path, source: str) -> None:
    """A profile that cannot be loaded would otherwise be listed as if it could."""
    reading = read_source(written(tmp_path / "greeting.py", source))

    assert reading is not None
    assert reading.name == ""


def test_a_module_that_profiles_use_is_no_profile(tmp_path: Path) -> None:
    """Profiles may share code in a file next to them."""
    assert read_source(written(tmp_path / "shared.py", "def register_all(): ...\n")) is None
    assert read_source(written(tmp_path / "other.py", "X = 1\n")) is None


@pytest.mark.parametrize(
    "init",
    [
        "from .profile import register\n",
        "from .profile import Greeting\n\ndef register(cli_group):\n    return Greeting\n",
        "def register(cli_group):\n    from .profile import Greeting\n    return Greeting\n",
    ],
)
def test_a_package_is_read_through_its_imports(tmp_path: Path, init: str) -> None:
    """A package has its class and its commands in different modules."""
    folder = tmp_path / "greeting"
    written(folder / "__init__.py", init)
    written(folder / "profile.py", profile_source())

    assert read_source(folder) == GREETING


def test_a_class_that_is_imported_from_elsewhere_is_unclear(tmp_path: Path) -> None:
    """Its source is not searched for on the import path."""
    source = "from elsewhere import Greeting\n\ndef register(cli_group):\n    return Greeting\n"

    assert read_source(written(tmp_path / "greeting.py", source)) == UNCLEAR


def test_a_file_without_a_name_in_it_cannot_have_that_name(tmp_path: Path) -> None:
    """Only files that mention a name are parsed to find one profile."""
    path = written(tmp_path / "greeting.py", profile_source())

    assert mentions(path, "greeting")
    assert not mentions(path, "farewell")
    assert mentions(tmp_path, "farewell")


def test_a_syntax_error_is_raised(tmp_path: Path) -> None:
    """The list shows it with its line."""
    with pytest.raises(SyntaxError):
        read_source(written(tmp_path / "greeting.py", "def register(:\n"))
