"""Test doubles, recorded answers, crashes and inputs, for tests of workflows.

    agent = ScriptedAgent(["a draft", {"status": "pass"}])
    clock = FrozenClock()

Names are imported when they are first used; only the plug-in needs pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff._lazy import exported_names

if TYPE_CHECKING:
    from signoff.agents.scripted import CassetteAgent as CassetteAgent
    from signoff.agents.scripted import DelayedAnswer as DelayedAnswer
    from signoff.agents.scripted import FileScript as FileScript
    from signoff.agents.scripted import ScriptedAgent as ScriptedAgent
    from signoff.runtime.engine import Engine as Engine
    from signoff.store.sqlite import MemoryStore as MemoryStore
    from signoff.testing.crash import Survival as Survival
    from signoff.testing.crash import crash_at as crash_at
    from signoff.testing.crash import crash_everywhere as crash_everywhere
    from signoff.testing.doubles import CrashingStore as CrashingStore
    from signoff.testing.doubles import EffectLog as EffectLog
    from signoff.testing.doubles import FrozenClock as FrozenClock
    from signoff.testing.doubles import WrappedStore as WrappedStore
    from signoff.testing.project_fixture import ProjectFixture as ProjectFixture
    from signoff.testing.skill_inputs import case_id as case_id
    from signoff.testing.skill_inputs import extract_schema as extract_schema
    from signoff.testing.skill_inputs import generate_inputs as generate_inputs
    from signoff.testing.skill_inputs import generate_test_inputs as generate_test_inputs
    from signoff.testing.skill_inputs import run_skill_invocation as run_skill_invocation

__all__, __getattr__, __dir__ = exported_names(__name__)
