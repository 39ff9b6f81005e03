import pytest

from signoff import plugins
from signoff.agents.kinds import BUILT_IN
from signoff.review.families import ModelUse, find_relatives
from signoff.runtime.ports import capabilities_of
from tests.tables import table


def use(kind: str, model: str | None = None, agent: str = "") -> ModelUse:
    return ModelUse(agent or kind, kind, model, capabilities_of(plugins.load(BUILT_IN[kind])))


@table(
    ("kind", "model", "expected"),
    [
        ("claude", None, "anthropic"),
        ("claude", "opus", "anthropic"),
        ("claude", "an-alias-of-ours", "anthropic"),
        ("anthropic", "claude-sonnet-4-5", "anthropic"),
        ("codex", None, "openai"),
        ("codex", "o3", "openai"),
        ("codex", "gpt-oss:20b", "openai"),
        ("openai", "chatgpt-4o-latest", "openai"),
        ("openai", "mistral-large-latest", "mistral"),
        ("openai", "our-finetune", None),
        ("openai", "anthropic/claude-3.5-sonnet", "anthropic"),
        ("gemini", None, "google"),
        ("gemini", "flash", "google"),
        ("ollama", None, None),
        ("ollama", "gemma3:4b", "google"),
        ("ollama", "llama3.2", "meta"),
        ("ollama", "codellama:13b", "meta"),
        ("ollama", "Qwen2.5-Coder", "qwen"),
        ("ollama", "mixtral:8x7b", "mistral"),
        ("ollama", "codestral", "mistral"),
        ("ollama", "deepseek-r1-distill-llama-70b", "deepseek"),
        ("ollama", "phi4", "microsoft"),
        ("ollama", "ollama/dolphin", None),
        ("openai", "meta-llama/Some-New-Name", "meta"),
        ("local", None, "smollm"),
        ("local", "smollm2-135m", "smollm"),
        ("scripted", None, None),
        ("command", None, None),
    ],
)
def test_the_family_comes_from_the_model_or_else_from_the_program(
    kind: str, model: str | None, expected: str | None
) -> None:
    """The program's name alone does not say which model it runs."""
    assert use(kind, model).family == expected


def test_critics_of_the_authors_family_are_named() -> None:
    """A flow that asks for independence is refused with these names."""
    report = find_relatives(
        use("claude", "opus"),
        {
            "twin": use("claude", "haiku"),
            "routed": use("openai", "anthropic/claude-3.5"),
            "codex": use("codex"),
            "spelling": use("check"),
            "ann": use("manual"),
        },
    )

    assert report.same == ("twin", "routed")
    assert report.unknown == ()
    assert not report.independent
    assert str(report) == "of the author's family anthropic: twin, routed"


def test_an_unknown_family_does_not_count_as_independent() -> None:
    """The critic may be of the author's family."""
    report = find_relatives(use("claude"), {"mystery": use("command"), "gemini": use("gemini")})

    assert report.unknown == ("mystery",)
    assert not report.independent
    assert str(report) == "of an unknown family: mystery"


def test_with_an_unknown_author_every_model_may_be_a_relative() -> None:
    """Only humans and checks are certainly none; the same model certainly is one."""
    report = find_relatives(
        use("ollama", "ours"),
        {"same": use("ollama", "ours"), "codex": use("codex"), "ann": use("manual")},
    )

    assert report.author is None
    assert report.same == ("same",)
    assert report.unknown == ("codex",)


@pytest.mark.parametrize("kind", ["scripted", "command"])
def test_agents_that_name_no_model_are_the_same_only_if_they_are_one_agent(kind: str) -> None:
    """Two scripts or two programs of the user may be anything."""
    report = find_relatives(
        use(kind, agent="ann"), {"ann": use(kind, agent="ann"), "bob": use(kind, agent="bob")}
    )

    assert (report.same, report.unknown) == (("ann",), ("bob",))


@pytest.mark.parametrize("author", [use("manual"), use("check")])
def test_an_author_without_a_model_has_no_relatives(author: ModelUse) -> None:
    """A human's text shares no blind spots with any critic."""
    report = find_relatives(author, {"ann": use("manual"), "claude": use("claude")})

    assert report.independent
    assert str(report) == "no critic is of the author's family"
