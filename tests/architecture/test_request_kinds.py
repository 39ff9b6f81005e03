"""Only `core/requests.py` knows the kinds of request; other modules branch on the answer's form."""

import ast
from collections.abc import Iterable, Iterator

from signoff.core.requests import RequestKind
from tests.architecture.tree import Module, names_in, planted, product

KINDS = "signoff/core/requests.py"
TESTING = "signoff/testing/"
"""Test doubles and suites, which may ask for one particular kind."""

_NAMES = set(RequestKind.__members__)
_VALUES = {each.value for each in RequestKind}


def test_no_other_module_branches_on_a_kind_of_request() -> None:
    """A new kind would be shown or answered wrong there; a new form fails the type check."""
    assert list(uses_of_kinds(product())) == []


def test_uses_of_kinds_are_found() -> None:
    """A check that finds nothing would let every branch pass."""
    modules = planted(
        core__requests="kind = RequestKind.CHOICE",
        a__name="urgent = item.kind is RequestKind.APPROVAL",
        a__text='urgent = item.kind in ("approval", "choice")',
        a__match='match kind:\n    case "question":\n        pass',
        a__fine='form = kind.answer_form\nkind = RequestKind("choice")\nline = {"question": 1}',
    )

    assert list(uses_of_kinds(modules)) == [
        "signoff/a/name.py:1: APPROVAL",
        "signoff/a/text.py:1: approval",
        "signoff/a/match.py:2: question",
    ]


def uses_of_kinds(modules: Iterable[Module]) -> Iterator[str]:
    """Returns where modules name a kind of request, or compare something with its text."""
    others = (module for module in modules if not module.path.startswith((KINDS, TESTING)))
    return names_in(others, _kind_in)


def _kind_in(node: ast.AST) -> str:
    match node:
        case ast.Attribute(value=ast.Name(id="RequestKind"), attr=name) if name in _NAMES:
            return name
        case ast.Compare(comparators=values):
            texts = [each for value in values for each in ast.walk(value)]
        case ast.MatchValue(value=value):
            texts = [value]
        case _:
            return ""
    return next((t.value for t in texts if isinstance(t, ast.Constant) and t.value in _VALUES), "")
