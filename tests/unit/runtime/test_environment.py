import pytest

from signoff.runtime.environment import Secrets, program_environment


def test_only_what_is_named_or_ordinary_is_given_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else in a shell is none of an agent's business."""
    for name in ("GITHUB_TOKEN", "LC_TIME", "MINE", "PATH"):
        monkeypatch.setenv(name, "value")

    given = program_environment(["MINE"], {"FIXED": "1"})

    assert given.keys() >= {"LC_TIME", "MINE", "PATH", "FIXED"}
    assert "GITHUB_TOKEN" not in given


def test_secrets_are_known_by_the_names_of_their_variables() -> None:
    """The longest goes first, or a part of it would stay."""
    secrets = Secrets.of(
        {
            "A_KEY": "abcdefgh",
            "B_TOKEN": "abcdefgh-and-more",
            "HOME": "somewhere-long",
            "HTTPS_PROXY": "http://ann:pw@proxy:80",
            "SHORT_KEY": "yes",
        }
    )

    hidden = secrets.hide("abcdefgh abcdefgh-and-more somewhere-long ann:pw yes")

    assert hidden == "[hidden] [hidden] somewhere-long [hidden] yes"
