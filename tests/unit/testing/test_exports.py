import subprocess
import sys

import signoff.testing


def test_every_public_name_can_be_had() -> None:
    """A name in the list that leads nowhere breaks `from signoff.testing import *`."""
    for name in signoff.testing.__all__:
        assert getattr(signoff.testing, name) is not None


def test_doubles_need_no_pytest() -> None:
    """People use the scripted agent in demonstrations, where there is none."""
    script = (
        "import sys, signoff.testing as t\n"
        "t.ScriptedAgent, t.FrozenClock, t.WrappedStore, t.CrashingStore, t.crash_everywhere\n"
        "t.Engine, t.MemoryStore\n"
        "print('pytest' in sys.modules)"
    )

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert result.stdout == "False\n", result.stderr
