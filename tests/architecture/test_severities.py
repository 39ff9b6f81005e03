"""Only `core/severity.py` lists the severities; all other modules derive what they need."""

import ast
import re
from collections.abc import Iterable, Iterator

from signoff.core.severity import Severity
from tests.architecture.tree import Module, names_in, planted, product

LIST = "signoff/core/severity.py"

ALLOWED = {
    "signoff/agents/check.py": "translates the words of compilers, such as `fatal`",
    "signoff/surfaces/cli/demo/checks.py": "is a check like those of users: it rates its findings",
    "signoff/review/flow/reading.py": "defines policies that are named after severities",
    "signoff/profiles/responses.py": "reads a format with a field `issues_critical`",
    "signoff/skills/types.py": "defines the levels of confidence, one of which is `medium`",
    "signoff/review/pure/policy.py": "implements the trigger `conflicting_criticals`",
    "signoff/views/run_directory/answers.py": "uses `critical` as the priority of a question",
}
"""Modules that mean one particular severity, or something else of the same name."""

BOUNDS = {"high", "low"}
"""Lower-case names that are mostly the ends of a range; a list of severities has others too."""

_NAMES = {each.value for each in Severity}
_KEYS = {each.key for each in Severity} - BOUNDS
_IN_TEXT = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(_NAMES | _KEYS)})(?![A-Za-z])")


def test_no_other_module_spells_out_severities() -> None:
    """A new severity would be missing there: in a prompt, a file format or a color."""
    found = [each for each in spelled_out(product()) if each.partition(":")[0] not in ALLOWED]

    assert found == []


def test_every_exception_is_needed() -> None:
    """An exception that nothing needs would hide the next list."""
    used = {each.partition(":")[0] for each in spelled_out(product())}

    assert set(ALLOWED) <= used


def test_severities_are_found_in_code_texts_and_fields() -> None:
    """A check that finds nothing would let every list pass."""
    modules = planted(
        core__severity='HIGH = "HIGH"',
        a__code="worst = Severity.CRITICAL",
        a__text='prompt = f"CRITICAL, HIGH or {other}"',
        a__key='counts = {"critical_pursuing": 1}',
        a__field="class Section:\n    medium: str = ''",
        a__argument="dict(critical=1)",
        a__fine='"""HIGH."""\nbounds = {"low": 1, "high": 2}\nwhy = "critically LOWER"',
    )

    assert list(spelled_out(modules)) == [
        "signoff/a/code.py:1: CRITICAL",
        "signoff/a/text.py:1: CRITICAL",
        "signoff/a/key.py:1: critical",
        "signoff/a/field.py:2: medium",
        "signoff/a/argument.py:1: critical",
    ]


def spelled_out(modules: Iterable[Module]) -> Iterator[str]:
    """Returns where modules other than the list name a severity in code or in a literal."""
    return names_in((module for module in modules if module.path != LIST), _severity_in)


def _severity_in(node: ast.AST) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="Severity"), attr=name) if name in _NAMES:
            return name
        case ast.Constant(value=str(text)) if match := _IN_TEXT.search(text):
            return match[0]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.keyword(arg=str(name)):
            return name if name in _KEYS else ""
        case _:
            return ""
