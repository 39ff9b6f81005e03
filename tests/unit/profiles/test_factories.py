from collections.abc import Mapping
from typing import Any

import pytest

from signoff.core.errors import UnknownName
from signoff.profiles import (
    AIProvider,
    AIProviderFactory,
    AIProviderResult,
    ApprovalProvider,
    ApprovalProviderFactory,
    ProfileFactory,
    StandardsProvider,
    StandardsProviderFactory,
)
from signoff.profiles.factories import ProfileRegistry


class EchoProvider(AIProvider):
    """Answers with the prompt."""

    def validate(self) -> None:
        """Is always ready."""

    def generate(self, prompt: str, context: Mapping[str, Any]) -> AIProviderResult | None:
        """Returns the prompt."""
        return AIProviderResult(response=prompt)


class HalfProvider(AIProvider):
    """Cannot generate."""

    def validate(self) -> None:
        """Is always ready."""


class WikiStandards(StandardsProvider):
    """Takes its standards from a wiki."""

    def validate(self) -> None:
        """Is always ready."""

    def create_bundle(
        self,
        context: Mapping[str, Any],
        connection_timeout: float | None = None,
        response_timeout: float | None = None,
    ) -> str:
        """Returns the address."""
        return f"{self.folder}: {self.config['address']}"


@pytest.fixture(autouse=True)
def _own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    for factory in ProfileRegistry.__subclasses__():
        monkeypatch.setattr(factory, "_registered", {})


def test_each_factory_has_its_own_keys() -> None:
    """An approver is no provider of responses, even under the same name."""
    AIProviderFactory.register("echo", EchoProvider)

    with pytest.raises(UnknownName):
        ApprovalProviderFactory.create("echo")


@pytest.mark.parametrize(
    ("factory", "known"),
    [
        (ProfileFactory, ["jpa-mt", "python-module"]),
        (ApprovalProviderFactory, ["manual", "skip"]),
        (StandardsProviderFactory, ["scoped-layer-fs", "yaml-rules"]),
    ],
)
def test_an_unknown_key_lists_the_known_ones(
    factory: type[ProfileRegistry[Any]], known: list[str]
) -> None:
    """The user mistyped it, or forgot to install the package that has it."""
    with pytest.raises(UnknownName) as error:
        factory.create("jpa")

    assert error.value.known == factory.keys()
    assert all(name in str(error.value) for name in known)
    assert f"unknown {factory.kind} 'jpa'" in str(error.value)


@pytest.mark.parametrize("key", ["", " ", "-echo", "my provider", "a/b", "a:b", "é", "x" * 101, 7])
def test_a_key_that_cannot_be_typed_is_refused(key: Any) -> None:
    """It appears in settings, in options and in stored runs."""
    with pytest.raises(ValueError, match="is not a valid key"):
        AIProviderFactory.register(key, EchoProvider)


@pytest.mark.parametrize("implementation", [object, WikiStandards, EchoProvider(), "echo", None])
def test_a_class_of_another_kind_is_refused(implementation: Any) -> None:
    """The session would fail in the middle, at its first call."""
    with pytest.raises(TypeError, match="'echo' must be a subclass of AIProvider"):
        AIProviderFactory.register("echo", implementation)


def test_an_incomplete_class_is_refused_with_what_it_lacks() -> None:
    """The author finds out when it is registered, not when a session needs it."""
    with pytest.raises(TypeError, match="'half' does not implement: generate"):
        AIProviderFactory.register("half", HalfProvider)  # type: ignore[type-abstract]  # the mistake


def test_approvers_that_are_shipped_are_created_when_they_are_used() -> None:
    """Their keys are import paths, which a renamed class would break."""
    created = [*map(ApprovalProviderFactory.create, ApprovalProviderFactory.keys())]

    assert len(created) == 2
    assert all(isinstance(approver, ApprovalProvider) for approver in created)
