import pytest

from signoff.agents.wrappers import FREE, Price, PricedAgent, Tariff, price_list
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentBadOutput
from signoff.core.spend import Usage
from signoff.runtime.effect_errors import usage_of
from signoff.runtime.ports import Capabilities
from signoff.testing import ScriptedAgent
from tests.agent_harness import call_for

COUNTED = Usage(tokens_in=1_000_000, tokens_out=100_000)
SONNET = 3.0 + 1.5


async def cost(tariff: Tariff, usage: Usage | None, model: str | None = None) -> Usage | None:
    agent = PricedAgent(ScriptedAgent(["Yes."], usage=usage), tariff)
    return (await agent.ask(AgentRequest("?", model=model), call_for())).usage


@pytest.mark.parametrize(
    ("tariff", "model", "usd"),
    [
        (Tariff("claude-sonnet-4-5"), None, SONNET),
        (Tariff(), "claude-sonnet-4-5-20250929", SONNET),
        (Tariff("gpt-5"), "claude-sonnet-4-5", SONNET),
        (Tariff("mystery"), None, None),
        (Tariff(), None, None),
        (Tariff("claude-sonnet-4-5", other_server=True), None, None),
        (Tariff("mystery", own=Price(1, 10)), None, 2.0),
        (Tariff("claude-sonnet-4-5", own=Price(1, 10), other_server=True), None, 2.0),
        (Tariff("llama3.2", free=True), None, 0.0),
        (Tariff("qwen3-coder:480b-cloud", free=True), None, None),
    ],
    ids=str,
)
async def test_tokens_become_money_where_the_price_is_known(
    tariff: Tariff, model: str | None, usd: float | None
) -> None:
    """Budgets in dollars depend on these sums."""
    usage = await cost(tariff, COUNTED, model)

    assert usage is not None
    assert usage.usd == pytest.approx(usd)
    assert usage.tokens == COUNTED.tokens


MTOK = 1_000_000


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        ("claude-sonnet-4-5", Usage(MTOK, 0, tokens_cached=MTOK), 0.3),
        ("claude-sonnet-4-5", Usage(MTOK, 0, tokens_cache_write=MTOK), 3.75),
        (
            "claude-sonnet-4-5",
            Usage(10 * MTOK, MTOK, tokens_cached=6 * MTOK, tokens_cache_write=MTOK),
            3 * 3 + 6 * 0.3 + 3.75 + 15,
        ),
        ("gpt-5", Usage(MTOK, 0, tokens_cached=MTOK), 0.125),
        ("gpt-4.1", Usage(MTOK, 0, tokens_cached=MTOK), 0.5),
        ("gpt-4o", Usage(MTOK, 0, tokens_cached=MTOK), 1.25),
        ("gemini-2.5-flash", Usage(MTOK, 0, tokens_cached=MTOK), 0.075),
    ],
)
async def test_cached_tokens_have_a_price_of_their_own(
    model: str, usage: Usage, usd: float
) -> None:
    """A run with a warm cache would otherwise seem several times as expensive as it is."""
    priced = await cost(Tariff(model), usage)

    assert priced is not None
    assert priced.usd == pytest.approx(usd)


def test_more_cached_tokens_than_tokens_do_not_make_a_call_cheaper_than_free() -> None:
    """Servers have bugs, and a negative cost would lift every limit."""
    usage = Usage(MTOK, 0, tokens_cached=9 * MTOK, tokens_cache_write=9 * MTOK)

    assert Price(2, 8, 0.5, 3).cost(usage) == 0.5


async def test_the_cost_an_agent_reports_itself_is_used() -> None:
    """An agent knows about discounts that no list has."""
    usage = await cost(Tariff("claude-sonnet-4-5"), Usage(10, 10, usd=0.5))

    assert usage is not None
    assert usage.usd == 0.5


async def test_a_call_without_token_counts_has_an_unknown_cost() -> None:
    """A partial sum would look complete."""
    assert await cost(Tariff("claude-sonnet-4-5"), None) is None
    assert await cost(Tariff("llama3.2", free=True), None) == Usage(usd=0.0)


async def test_a_failed_call_is_priced_like_any_other() -> None:
    """Otherwise a model with invalid answers would seem to cost nothing."""
    agent = PricedAgent(ScriptedAgent(["no form"], usage=COUNTED), Tariff("claude-sonnet-4-5"))

    with pytest.raises(AgentBadOutput) as raised:
        await agent.ask(AgentRequest("?", schema={"type": "object"}), call_for())

    usage = usage_of(raised.value)
    assert usage is not None
    assert usage.usd == pytest.approx(SONNET)


@pytest.mark.parametrize(
    ("declared", "tariff", "known"),
    [
        (Capabilities(reports_price=True), Tariff(), True),
        (Capabilities(), Tariff(), False),
        (Capabilities(), Tariff("gpt-5-codex"), True),
        (Capabilities(), Tariff(free=True), True),
        (Capabilities(), Tariff(own=FREE), True),
    ],
    ids=str,
)
async def test_capabilities_report_whether_the_price_is_known(
    declared: Capabilities, tariff: Tariff, known: bool
) -> None:
    """A limit in dollars cannot be enforced for an agent of unknown price."""
    agent = ScriptedAgent()
    agent.capabilities = declared
    priced = PricedAgent(agent, tariff)

    assert priced.capabilities.reports_price is known
    assert (await priced.capabilities_for(None)).reports_price is known


class SaysItsPrice(ScriptedAgent):
    """Reports its cost with every reply."""

    async def capabilities_for(self, model: str | None) -> Capabilities:
        return Capabilities(reports_price=model != "unheard-of")


async def test_a_custom_agent_can_declare_that_it_reports_its_price() -> None:
    """Otherwise its calls would be refused under a limit in dollars."""
    agent = PricedAgent(SaysItsPrice(), Tariff())

    assert (await agent.capabilities_for(None)).reports_price
    assert not (await agent.capabilities_for("unheard-of")).reports_price


def test_the_price_list_is_complete() -> None:
    """A missing or misspelled price would first be noticed on a user's bill."""
    prices = price_list()

    assert len(prices) > 20
    assert all(0 < price.tokens_in < price.tokens_out < 200 for price in prices.values())
    assert all(0 < (price.cached or 0) < price.tokens_in for price in prices.values())
