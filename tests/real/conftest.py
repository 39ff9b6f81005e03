import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
