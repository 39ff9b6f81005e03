import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from signoff.agents.weights import SMOLLM2, State, model_cache
from tests.real.vendors import KEY, KEY_NAME, VENDORS, Vendor
from tests.stubs.vendors.server import Turn, VendorStub


@pytest.fixture(params=VENDORS, ids=lambda vendor: vendor.name)
def vendor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """Each vendor whose program is installed; skips the others."""
    one: Vendor = request.param
    if one.program is None:
        missing = f"the real {one.name} program is not installed; run: make agents"
        if request.config.getoption("--real"):
            pytest.fail(missing)
        pytest.skip(missing)
    monkeypatch.setenv(KEY_NAME, KEY)
    return one


RUNNER = Path(__file__).parents[2] / ".model-env"
"""Where `make model` puts what runs the model; it is too large for the environment of the tests."""


@pytest.fixture
def small_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the small model importable; skips the test if it is not installed."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(RUNNER)])
    weights = model_cache(os.environ).state(SMOLLM2)
    if find_spec("xllamacpp") is None or weights is not State.READY:
        missing = "the real local model is not here; run: make model"
        if request.config.getoption("--real"):
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder without a login; gemini needs a setting to accept a key."""
    home = tmp_path / "home"
    (home / ".gemini").mkdir(parents=True)
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return home


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace inside a project."""
    (tmp_path / "project" / ".signoff").mkdir(parents=True)
    place = tmp_path / "project" / "work"
    place.mkdir()
    return place


@pytest.fixture
def serve(vendor: Vendor) -> Iterator[Callable[[Turn], VendorStub]]:
    """Starts stubs of the vendor's API, and stops them."""
    stubs: list[VendorStub] = []

    def start(turn: Turn) -> VendorStub:
        stubs.append(vendor.stub(turn))
        return stubs[-1]

    yield start
    for stub in stubs:
        stub.close()
