"""Test doubles and test suites for workflows, stores and agents.

    agent = ScriptedAgent(["a draft", {"status": "pass"}])
    clock = FrozenClock()

Names are imported when they are first used; only the suites need pytest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from signoff.agents.cassette import CassetteAgent as CassetteAgent
    from signoff.agents.file_script import FileScript as FileScript
    from signoff.agents.scripted import Delayed as Delayed
    from signoff.agents.scripted import ScriptedAgent as ScriptedAgent
    from signoff.runtime.engine import Engine as Engine
    from signoff.store.memory import MemoryStore as MemoryStore
    from signoff.testing.agent_suite import AgentSuite as AgentSuite
    from signoff.testing.crash import Survival as Survival
    from signoff.testing.crash import crash_at as crash_at
    from signoff.testing.crash import crash_everywhere as crash_everywhere
    from signoff.testing.crashing_store import CrashingStore as CrashingStore
    from signoff.testing.effect_log import EffectLog as EffectLog
    from signoff.testing.frozen_clock import FrozenClock as FrozenClock
    from signoff.testing.project_fixture import ProjectFixture as ProjectFixture
    from signoff.testing.store_suite import StoreSuite as StoreSuite
    from signoff.testing.wrapped_store import WrappedStore as WrappedStore

_MODULES = {
    # doubles
    "frozen_clock": ("FrozenClock",),
    "signoff.agents.file_script": ("FileScript",),
    "signoff.agents.scripted": ("Delayed", "ScriptedAgent"),
    "signoff.agents.cassette": ("CassetteAgent",),
    "project_fixture": ("ProjectFixture",),
    "wrapped_store": ("WrappedStore",),
    # what they are used with
    "signoff.runtime.engine": ("Engine",),
    "signoff.store.memory": ("MemoryStore",),
    # suites
    "agent_suite": ("AgentSuite",),
    "store_suite": ("StoreSuite",),
    # crashes
    "crash": ("Survival", "crash_at", "crash_everywhere"),
    "crashing_store": ("CrashingStore",),
    "effect_log": ("EffectLog",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605  # names come from the table above


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'signoff.testing' has no attribute {name!r}")
    if name.endswith("Suite"):
        _explain_failures(module)
    value = getattr(import_module(module if "." in module else f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the public names."""
    return sorted(__all__)


def _explain_failures(suite: str) -> None:
    """Lets pytest show the values in a suite's assertions, as it does in test files."""
    import pytest

    # For a module that is already imported this is too late, and pytest would warn about it.
    if f"{__name__}.{suite}" not in sys.modules:
        pytest.register_assert_rewrite(f"{__name__}.{suite}")
