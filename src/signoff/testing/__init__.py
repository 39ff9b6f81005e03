"""Test doubles and test suites for workflows, stores and agents.

    agent = ScriptedAgent(["a draft", {"status": "pass"}])
    clock = FrozenClock()

Names are imported when they are first used; only the suites need pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.agents.cassette import CassetteAgent as CassetteAgent
    from signoff.agents.scripted import Delayed as Delayed
    from signoff.agents.scripted import FileScript as FileScript
    from signoff.agents.scripted import ScriptedAgent as ScriptedAgent
    from signoff.runtime.engine import Engine as Engine
    from signoff.store.sqlite import MemoryStore as MemoryStore
    from signoff.testing.crash import Survival as Survival
    from signoff.testing.crash import crash_at as crash_at
    from signoff.testing.crash import crash_everywhere as crash_everywhere
    from signoff.testing.crashing_store import CrashingStore as CrashingStore
    from signoff.testing.effect_log import EffectLog as EffectLog
    from signoff.testing.frozen_clock import FrozenClock as FrozenClock
    from signoff.testing.project_fixture import ProjectFixture as ProjectFixture
    from signoff.testing.skill_inputs import extract_schema as extract_schema
    from signoff.testing.skill_inputs import generate_inputs as generate_inputs
    from signoff.testing.skill_inputs import generate_test_inputs as generate_test_inputs
    from signoff.testing.skill_invocation import case_id as case_id
    from signoff.testing.skill_invocation import run_skill_invocation as run_skill_invocation
    from signoff.testing.wrapped_store import WrappedStore as WrappedStore

_HOMES = {
    # doubles
    "signoff.testing.frozen_clock": "FrozenClock",
    "signoff.agents.scripted": "Delayed FileScript ScriptedAgent",
    "signoff.agents.cassette": "CassetteAgent",
    "signoff.testing.project_fixture": "ProjectFixture",
    "signoff.testing.wrapped_store": "WrappedStore",
    # what they are used with
    "signoff.runtime.engine": "Engine",
    "signoff.store.sqlite": "MemoryStore",
    # skills
    "signoff.testing.skill_inputs": "extract_schema generate_inputs generate_test_inputs",
    "signoff.testing.skill_invocation": "case_id run_skill_invocation",
    # crashes
    "signoff.testing.crash": "Survival crash_at crash_everywhere",
    "signoff.testing.crashing_store": "CrashingStore",
    "signoff.testing.effect_log": "EffectLog",
}
__all__, __getattr__, __dir__ = exported_names(__name__, _HOMES)
