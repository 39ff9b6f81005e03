"""Tests of the agent, with the fixtures that signoff gives to pytest."""

from signoff_shout import ShoutAgent

from signoff import Outcome, StepDef, Workflow


async def greet(ctx):
    reply = await ctx.ask("writer", "hello")
    return Outcome.OK, {"said": reply.text}


WORKFLOW = Workflow("greet", StepDef("greet", handler=greet, next={Outcome.OK: None}))


def test_it_shouts(signoff_project):
    """The whole way: a run asks it, and its answer is in the run's state."""
    result = signoff_project.run(WORKFLOW, writer=ShoutAgent(mark="!!"))

    assert result.state == {"said": "HELLO!!"}
    assert result.spend.usd == 0.0


def test_a_busy_one_is_asked_again(signoff_project):
    """Passing faults are the engine's to wait out, and every attempt counts."""
    result = signoff_project.run(WORKFLOW, writer=ShoutAgent(busy=1))

    assert result.state == {"said": "HELLO!"}
    assert result.spend.calls == 2
