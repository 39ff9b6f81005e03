import pytest

from signoff.runtime.environment import HidingStream, Secrets, program_environment


def test_only_named_and_ordinary_variables_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else in a shell is none of an agent's business."""
    for name in ("GITHUB_TOKEN", "LC_TIME", "MINE", "PATH"):
        monkeypatch.setenv(name, "value")

    variables = program_environment(["MINE"], {"FIXED": "1"})

    assert variables.keys() >= {"LC_TIME", "MINE", "PATH", "FIXED"}
    assert "GITHUB_TOKEN" not in variables


def test_secrets_are_known_by_the_names_of_their_variables() -> None:
    """The longest goes first, or a part of it would stay."""
    secrets = Secrets.of(
        {
            "A_KEY": "abcdef8h",
            "B_TOKEN": "abcdef8h-and-more",
            "PGPASSWORD": "postgres",
            "MINE": "abcdefghij",
            "HOME": "somewhere-long",
            "HTTPS_PROXY": "http://ann:pw@proxy:80",
            "SHORT_KEY": "yes",
        },
        keys=["MINE"],
    )

    hidden = secrets.hide(
        "abcdef8h abcdef8h-and-more somewhere-long ann:pw yes postgres abcdefghij"
    )

    assert hidden == (
        "[hidden: A_KEY] [hidden: B_TOKEN] somewhere-long [hidden: HTTPS_PROXY] yes postgres "
        "[hidden: MINE]"
    )


def test_a_secret_that_comes_in_pieces_is_hidden_all_the_same() -> None:
    """Streamed word by word, a key would be in the log word by word."""
    heard: list[str] = []
    stream = HidingStream(Secrets.of({"A_KEY": "sk-12345678"}), heard.append)

    for piece in ("my key: s", "k-1234", "5678, or sk", "-", "9"):
        stream.add(piece)
    stream.close()

    assert "".join(heard) == "my key: [hidden: A_KEY], or sk-9"


def test_text_that_cannot_be_a_secret_is_passed_on_at_once() -> None:
    """A live view would lag behind otherwise."""
    heard: list[str] = []

    HidingStream(Secrets.of({"A_KEY": "sk-12345678"}), heard.append).add("hello s")

    assert heard == ["hello "]
