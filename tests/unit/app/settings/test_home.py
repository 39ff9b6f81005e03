from pathlib import Path

import pytest

from signoff.app.settings.home import find_home, init_home
from signoff.core.errors import UsageError
from signoff.core.remedies import InitProject


def test_the_nearest_home_is_used(tmp_path: Path) -> None:
    """A project inside another must not write into the outer one's database."""
    inner = tmp_path / "inner"
    inner.mkdir()
    init_home(tmp_path, {})
    init_home(inner, {})

    home = find_home(inner, {})

    assert home is not None
    assert home.root == inner


def test_the_variable_overrides_the_nearest_home(tmp_path: Path) -> None:
    """Scripts point at one home and must not pick up another by accident."""
    init_home(tmp_path, {})
    named = tmp_path / "elsewhere"
    init_home(tmp_path, {"SIGNOFF_HOME": str(named)})

    home = find_home(tmp_path, {"SIGNOFF_HOME": str(named)})

    assert home is not None
    assert home.path == named


def test_a_named_home_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    """A typo in the variable would otherwise send runs to the wrong database."""
    init_home(tmp_path, {})

    with pytest.raises(UsageError) as refused:
        find_home(tmp_path, {"SIGNOFF_HOME": str(tmp_path / "typo")})
    assert refused.value.remedies == (InitProject(),)


def test_a_new_home_keeps_runs_out_of_git(tmp_path: Path) -> None:
    """Committed by accident, a database of prompts would be public."""
    result = init_home(tmp_path, {})

    assert result.home.config.read_text().count("version: 1") == 1
    assert result.home.flows.is_dir()
    assert result.home.constraints.is_dir()
    ignored = (result.home.path / ".gitignore").read_text().split()
    assert {"signoff.db*", "runs/"} <= set(ignored)
