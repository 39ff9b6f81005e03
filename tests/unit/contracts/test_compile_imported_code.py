"""The digest of a definition covers the modules of the project that its conditions use."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from signoff.contracts import define_workflow
from signoff.contracts.compile import describe_modules
from signoff.core.workflow import Workflow
from signoff.documents.python_files import import_file, import_loose

FILES = {
    "shop/__init__.py": "from .rules import price_limit\n",
    "shop/rules.py": (
        "import shop.numbers as numbers\n"
        "from .words import *\n"
        "def price_limit():\n    return numbers.LIMIT\n"
    ),
    "shop/numbers.py": "LIMIT = 20\n",
    "shop/words.py": "def plural(text):\n    return text + 's'\n",
    "shop/late.py": "def check(result):\n    return bool(result)\n",
    "shop/unused.py": "from . import rules\n",
    "conditions.py": (
        "import json\n"
        "import pytest\n"
        "import shop\n"
        "def helper():\n    return 1\n"
        "def cheap(ctx):\n"
        "    from shop.late import check\n"
        "    return check(ctx.result) and ctx.result < shop.price_limit()\n"
    ),
}


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
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
    return [name for name, _ in describe_modules([function])]


def test_every_module_of_the_project_that_is_imported_is_found(load: Callable[[], Any]) -> None:
    """However a helper is reached, a worker could weaken it."""
    imported = ["__init__.py", "conditions.py", "late.py", "numbers.py", "rules.py", "words.py"]

    assert names(load().cheap) == imported


@pytest.mark.parametrize(
    ("path", "old", "new", "changes"),
    [
        ("shop/numbers.py", "20", "99", True),
        ("shop/words.py", "'s'", "'es'", True),
        ("shop/late.py", "bool(result)", "True", True),
        ("conditions.py", "return 1", "return 2", True),
        ("shop/unused.py", "rules", "words", False),
        ("shop/numbers.py", "LIMIT", "# what it may cost\nLIMIT", False),
    ],
)
def test_the_digest_changes_with_the_modules_that_conditions_use(
    tmp_path: Path, load: Callable[[], Any], path: str, old: str, new: str, changes: bool
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


def test_a_module_elsewhere_on_the_path_is_found_and_one_of_another_project_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workflow may import what is installed from a checkout; two projects may be open at once."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "shared"), *sys.path])
    for folder in ("first", "second", "shared"):
        (tmp_path / folder).mkdir()
    for folder in ("first", "second"):
        (tmp_path / folder / "book_rules.py").write_text(f"LIMIT = '{folder}'\n")
        (tmp_path / folder / "workflow.py").write_text(
            "import book_rules, book_words\ndef short(ctx):\n    return bool(book_rules.LIMIT)\n"
        )
    (tmp_path / "shared/book_words.py").write_text("WORDS = 1\n")
    first, second = (import_file(tmp_path / each / "workflow.py") for each in ("first", "second"))

    found = [describe_modules([each.short]) for each in (first, second)]

    assert [[name for name, _ in each] for each in found] == [
        ["book_rules.py", "book_words.py", "workflow.py"]
    ] * 2
    assert found[0][0] != found[1][0]
    assert found[0][1:] == found[1][1:]


def test_installed_code_and_code_without_source_are_left_out() -> None:
    """A new release of a library is no change of the definition."""
    shown: dict[str, Any] = {"__name__": "typed", "__file__": ""}
    exec("def typed(ctx):\n    return helper(ctx)", shown)  # as at a prompt

    assert describe_modules([shown["typed"], define_workflow, len, pytest.raises]) == []
