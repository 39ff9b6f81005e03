import pytest

from signoff.profiles.factories import (
    AIProviderFactory,
    ApprovalProviderFactory,
    ProfileFactory,
    StandardsProviderFactory,
)

FACTORIES = (AIProviderFactory, ApprovalProviderFactory, ProfileFactory, StandardsProviderFactory)


@pytest.fixture(autouse=True)
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test registers is unknown to the next."""
    for factory in FACTORIES:
        monkeypatch.setattr(factory, "_registered", dict(factory._registered))
