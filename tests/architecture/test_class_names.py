import ast
from collections import defaultdict
from collections.abc import Iterable

from tests.architecture.tree import Module, planted, product

SHARED = {
    # The specification of pairs has an error of this name: `signoff.pair.AgentError` is public.
    "AgentError": {"signoff.core.errors", "signoff.pair.session"},
    # A writer and a reviewer there, the sub-agents of skills here; both are public.
    "AgentRole": {"signoff.pair.session", "signoff.runtime.sub_agents"},
    # The specifications of contracts and of the engine use the same word, and so do their users:
    # `signoff.contracts.Condition` and `signoff.Condition` are both public.
    "Condition": {"signoff.contracts.model", "signoff.core.step"},
    "GateOption": {"signoff.contracts.model", "signoff.core.step"},
    # Quality reviews have three severities of their own: `signoff.skills.qr.Severity` is public.
    "Severity": {"signoff.core.severity", "signoff.skills.qr"},
    "StepContext": {"signoff.contracts.work", "signoff.core.context"},
    "StepOutput": {"signoff.contracts.model", "signoff.core.step_output"},
    # Public in both notations.
    "WorkflowStep": {"signoff.contracts.model", "signoff.review.flow.model"},
}

LEFT_OVER: dict[str, set[str]] = {
    # Names that are still used twice. Take them out as they get names of their own; add none.
}


def test_a_class_name_is_used_once_in_the_package() -> None:
    """Readers who search for a name find the wrong class half of the time."""
    unknown = {
        name: homes
        for name, homes in repeated(product()).items()
        if not homes <= SHARED.get(name, set()) | LEFT_OVER.get(name, set())
    }

    assert unknown == {}


def test_every_name_that_may_be_shared_is_shared() -> None:
    """The list would otherwise grow and never shrink."""
    found = repeated(product())

    assert {name for name in SHARED | LEFT_OVER if name not in found} == set()


def test_a_name_that_is_used_twice_is_found() -> None:
    """A check that finds nothing would let every name be used again."""
    modules = planted(core__a="class Plan: ...", flows__b="def f():\n    class Plan: ...")

    assert repeated(modules) == {"Plan": {"signoff.core.a", "signoff.flows.b"}}


def repeated(modules: Iterable[Module]) -> dict[str, set[str]]:
    homes = defaultdict(list)
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module.name)
    return {name: set(places) for name, places in homes.items() if len(places) > 1}
