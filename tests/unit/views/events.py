"""The journal of a run whose true numbers are known, second by second."""

from typing import Any

from signoff.core import events as ev
from signoff.core.effects import EffectId, EffectKind
from signoff.core.outcome import Outcome, Status

START = 1_700_000_000.0


def at(seconds: float, event: ev.Event) -> ev.Event:
    event.at = START + seconds
    return event


def asks(identity: str, agent: str = "claude", attempt: int = 1, **more: Any) -> ev.EffectStarted:
    payload = {"agent": agent, "prompt": "secret prompt", "model": "opus"} if attempt == 1 else None
    return ev.EffectStarted(EffectId(identity), EffectKind.ASK, "d", payload, attempt, **more)


def answers(identity: str, text: str = "secret reply", **usage: Any) -> ev.EffectFinished:
    return ev.EffectFinished(EffectId(identity), {"text": text}, usage=usage or None)


def waits(identity: str) -> ev.EffectStarted:
    return ev.EffectStarted(EffectId(identity), EffectKind.WAIT, "d", {"kind": "question"})


def journal() -> list[ev.Event]:
    """Returns a run that three processes drove: the first was killed, the second waited."""
    return [
        at(0, ev.RunStarted("docs", "definition", "draft", {}, seed="key of the run")),
        at(0, ev.StepBegun()),
        at(1, asks("draft#1", provider="anthropic", chat=True)),
        at(3, ev.EffectAttemptFailed(EffectId("draft#1"), {"type": "AgentTransient"})),
        at(4, asks("draft#1", attempt=2, provider="anthropic", chat=True)),
        # Its process is killed here, and another one takes over.
        at(60, ev.RunResumed()),
        at(61, asks("draft#1", attempt=3, provider="anthropic", chat=True)),
        at(71, answers("draft#1", tokens_in=100, tokens_out=20, usd=0.5, model="opus-1")),
        at(72, ev.StepFinished(Outcome.OK, "draft/ok", "sign", {"set": {"artifact": "a"}})),
        at(72, ev.StepBegun()),
        at(73, waits("wait#1")),
        at(73, ev.RunStopped(Status.WAITING)),
        at(1000, ev.RunResumed()),
        at(1001, ev.EffectFinished(EffectId("wait#1"), {"value": "yes"}, item=1)),
        at(1002, asks("check#1", "codex")),
        at(1005, ev.EffectFinished(EffectId("check#1"), error={"type": "AgentRefused"})),
        at(1006, ev.StepFinished(Outcome.OK, "sign/ok", None, {})),
        at(1006, ev.RunStopped(Status.COMPLETED)),
    ]
