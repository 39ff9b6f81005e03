"""Tests of the agent, with the fixtures that signoff gives to pytest."""

from signoff_shout import ShoutAgent

from signoff import Outcome, StepDef, Workflow


async def greet(ctx):
    reply = await ctx.ask("writer", "hello")
    return Outcome.OK, {"reply": reply.text}


WORKFLOW = Workflow("greet", StepDef("greet", handler=greet, next={Outcome.OK: None}))


def test_it_shouts(signoff_project):
    """A run calls the agent, and its reply is in the run's state."""
    result = signoff_project.run(WORKFLOW, writer=ShoutAgent(mark="!!"))

    assert result.state == {"reply": "HELLO!!"}
    assert result.spend.usd == 0.0


def test_a_busy_agent_is_asked_again(signoff_project):
    """The engine retries transient errors, and counts every attempt."""
    result = signoff_project.run(WORKFLOW, writer=ShoutAgent(busy=1))

    assert result.state == {"reply": "HELLO!"}
    assert result.spend.calls == 2
