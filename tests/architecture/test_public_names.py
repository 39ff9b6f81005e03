import ast
from collections.abc import Iterable

import signoff
from signoff import contracts, flows, pair, profiles, skills
from tests.architecture.tree import Module, planted, product

NAMES = """
AgentRequest AgentRole Answer Append Approval Arg BoundedInt Checked Choice ChoiceSet
CommandResult Condition Constant Dispatch Edge End Failure Gate GateOption Limits OnCrash
Option Otherwise Outcome Param Question Questions Reply Response RunResult SignoffError Spend
Status StepContext StepDef StepFailed StepOutput Usage UserQuestion Workflow __version__ answer
resume resume_async resume_context run run_async
""".split()


def test_the_public_names_are_these() -> None:
    """Removing a name breaks users' imports; a new name is a promise to keep it."""
    assert sorted(signoff.__all__) == NAMES
    assert all(getattr(signoff, name) is not None for name in NAMES)


def test_public_values_refuse_changes() -> None:
    """A light dataclass is frozen for type checkers only, and users may not run one."""
    packages = (signoff, contracts, flows, pair, profiles, skills)
    public = {name for package in packages for name in package.__all__}

    assert public & light_dataclasses(product()) == set()


def test_light_dataclasses_are_found() -> None:
    """A check that finds nothing would let every class pass."""
    text = "@light_dataclass(frozen=True)\nclass A: ...\n@dataclass\nclass B: ..."

    assert light_dataclasses(planted(a=text)) == {"A"}


def light_dataclasses(modules: Iterable[Module]) -> set[str]:
    """Returns the names of the classes that are light dataclasses."""
    return {
        node.name
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
        and any("light_dataclass" in ast.unparse(each) for each in node.decorator_list)
    }
