"""A user's own prompt templates: read from the folder a flow names, or written to start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from signoff.core.errors import Problem, UsageError
from signoff.documents.files import display_path, read_text
from signoff.documents.mistakes import Mistake
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.templates import mistakes_in, variables_of
from signoff.review.pure.prompts import REQUIRED, built_in, variables_for

LONGEST_TEMPLATE = 100_000
"""Bytes; a longer file is not a template that a user wrote."""
_SUFFIX = ".md"
_VALID = f"valid: {', '.join(f'{name}{_SUFFIX}' for name in sorted(REQUIRED))}"


def read_templates(
    name: str, folders: Sequence[Path], at: Callable[[KeyPath], str], problems: list[Problem]
) -> dict[str, str]:
    """Returns the templates in a folder by name; adds every mistake in them.

    A relative folder is looked for in `folders`, in this order.
    """
    paths = [folder / name for folder in folders]
    folder = next((path for path in paths if path.is_dir()), None)
    if folder is None:
        searched = " and ".join(dict.fromkeys(display_path(each) for each in folders))
        what = f"prompts is {name!r}, but there is no such folder"
        problems.append(Mistake(("prompts",), what, f"searched {searched}").problem(at))
        return {}
    templates: dict[str, str] = {}
    for file in sorted(folder.glob(f"*{_SUFFIX}")):
        if file.stem not in REQUIRED:
            problems.append(Problem(display_path(file), "is not the name of a template", _VALID))
        elif (text := read_text(file, problems, most=LONGEST_TEMPLATE)) is not None:
            # Templates have Unix line ends, whatever the editor: they are part of the prompt.
            templates[file.stem] = text.replace("\r\n", "\n")
            problems += _problems(file.stem, templates[file.stem], display_path(file))
    if not templates and not problems:
        what = f"the folder {name!r} has no templates"
        problems.append(Mistake(("prompts",), what, _VALID).problem(at))
    return templates


def write_templates(folder: Path) -> list[Path]:
    """Writes the built-in templates to a folder; raises `UsageError` if a file would be lost."""
    files = {folder / f"{name}{_SUFFIX}": built_in(name) for name in REQUIRED}
    if taken := [display_path(file) for file in files if file.exists()]:
        raise UsageError(f"already there: {', '.join(taken)}; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        file.write_text(text, "utf-8")
    return list(files)


def _problems(name: str, text: str, where: str) -> Iterator[Problem]:
    if not text.strip():
        yield Problem(where, "is empty", "delete it to use the built-in template")
        return
    yield from mistakes_in(text, where, variables_for(name))
    # A variable that is only tested is not shown to the agent.
    for missing in sorted(REQUIRED[name] - variables_of(text, printed=True)):
        remedy = "without it the agent would not see what it is about"
        yield Problem(where, f"{{{{{missing}}}}} is missing", remedy)
