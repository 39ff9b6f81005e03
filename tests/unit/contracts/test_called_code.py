"""The digest of a definition covers what its conditions call."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from signoff.contracts import define_workflow
from signoff.contracts.called_code import describe_called
from signoff.core.workflow import Workflow
from signoff.documents.python_files import import_file, import_loose

FILES = {
    "shop/__init__.py": "from .rules import price_limit\n",
    "shop/rules.py": (
        "import shop.numbers as numbers\n"
        "from .words import *\n"
        "RATES = {'low': 1, 'high': 2}\n"
        "def price_limit():\n    return numbers.limit() * RATES['low']\n"
        "def unused():\n    return 7\n"
    ),
    "shop/numbers.py": (
        "class Base:\n    factor = 2\n\n"
        "class Limit(Base):\n    def value(self):\n        return 10 * self.factor\n\n"
        "def limit():\n    return Limit().value()\n"
    ),
    "shop/words.py": "def plural(text):\n    return text + 's'\n",
    "shop/late.py": "def check(result):\n    return bool(result)\n",
    "conditions.py": (
        "import json\n"
        "import shop\n"
        "from shop import rules\n"
        "def cheap(ctx):\n    return ctx.result < shop.price_limit() and json.dumps(1) == '1'\n"
        "def late(ctx):\n    from shop.late import check\n    return check(ctx.result)\n"
        "def worded(ctx):\n    return ctx.result == rules.plural('book')\n"
        "class Within:\n"
        "    def __call__(self, ctx):\n        return ctx.result < self.limit()\n"
        "    def limit(self):\n        return rules.price_limit()\n"
        "within = Within()\n"
    ),
}

Load = Callable[[], Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Returns the conditions of a project as a new process would import them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
            del sys.modules[name]

    def fresh() -> Any:
        forget()
        return import_loose(tmp_path / "conditions.py")

    yield fresh
    forget()


def names(function: Any) -> list[str]:
    return [name for name, _ in describe_called(function)]


def test_functions_classes_and_constants_are_found_across_modules(load: Load) -> None:
    """A worker could weaken any of them."""
    assert names(load().cheap) == [
        "numbers.py:Base",
        "numbers.py:Limit",
        "numbers.py:limit",
        "rules.py:RATES",
        "rules.py:price_limit",
    ]


def test_imports_inside_functions_star_imports_and_methods_are_followed(load: Load) -> None:
    """However a helper is reached, its code decides."""
    conditions = load()

    assert names(conditions.late) == ["late.py:check"]
    assert names(conditions.worded) == ["words.py:plural"]
    assert "rules.py:price_limit" in names(conditions.within)
    cheap = conditions.cheap
    assert "rules.py:price_limit" in names(lambda ctx: cheap(ctx) is True)
    assert "rules.py:price_limit" in names(partial(print, cheap))


@pytest.mark.parametrize(
    ("path", "old", "new", "changes"),
    [
        ("shop/numbers.py", "factor = 2", "factor = 9", True),
        ("shop/numbers.py", "10 *", "99 *", True),
        ("shop/rules.py", "'low': 1", "'low': 100", True),
        ("shop/rules.py", "return 7", "return 8", False),
        ("shop/words.py", "'s'", "'es'", False),
        ("shop/numbers.py", "    return Limit()", "    # it is a limit\n    return Limit()", False),
    ],
)
def test_the_digest_changes_with_what_a_condition_calls_and_with_nothing_else(
    tmp_path: Path, load: Load, path: str, old: str, new: str, changes: bool
) -> None:
    """A weakened helper is a changed definition; a comment is not."""

    def compiled() -> Workflow:
        step = {"name": "buy", "command": ["true"], "postconditions": [load().cheap]}
        return define_workflow({"type": "shop", "steps": [step]})

    before = compiled()
    file = tmp_path / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new) + "\n\n")

    after = compiled()

    assert (after.digest != before.digest) is changes


def test_a_project_with_modules_of_the_same_names_does_not_change_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has two projects open must still resume the runs of both."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    projects = [tmp_path / "first", tmp_path / "second"]
    for project in projects:
        project.mkdir()
        (project / "book_rules.py").write_text("def limit():\n    return 10\n")
        (project / "workflow.py").write_text(
            "import book_rules\ndef short(ctx):\n    return ctx.result < book_rules.limit()\n"
        )
    first, second = (import_file(project / "workflow.py") for project in projects)

    (projects[1] / "book_rules.py").unlink()

    assert names(first.short) == ["book_rules.py:limit"]
    assert names(second.short) == []


def test_installed_code_and_code_without_source_are_left_out() -> None:
    """A new release of a library is no change of the definition."""
    shown: dict[str, Any] = {"__name__": "typed", "__file__": ""}
    exec("def typed(ctx):\n    return helper(ctx)", shown)  # as at a prompt

    assert describe_called(shown["typed"]) == []
    assert describe_called(define_workflow) == []
    assert describe_called(len) == []
