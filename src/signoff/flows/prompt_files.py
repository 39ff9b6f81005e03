"""The folder with a flow's own templates of prompts: reads and checks it, or writes a start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from signoff.documents.files import display_path
from signoff.documents.mistakes import Mistake
from signoff.documents.mistakes import Path as KeyPath
from signoff.documents.regular_files import NotRegular, read_regular
from signoff.errors import Problem, UsageError
from signoff.review.template import LONGEST_TEMPLATE, REQUIRED, SUFFIX, built_in
from signoff.review.template import problems as template_problems

_VALID = f"valid: {', '.join(f'{name}{SUFFIX}' for name in sorted(REQUIRED))}"


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
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        if file.stem not in REQUIRED:
            problems.append(Problem(display_path(file), "is not the name of a template", _VALID))
        elif (text := _text(file, problems)) is not None:
            templates[file.stem] = text
    if not templates and not problems:
        what = f"the folder {name!r} has no templates"
        problems.append(Mistake(("prompts",), what, _VALID).problem(at))
    return templates


def write_templates(folder: Path) -> list[Path]:
    """Writes the built-in templates to a folder; raises `UsageError` if a file would be lost."""
    files = {folder / f"{name}{SUFFIX}": built_in(name) for name in REQUIRED}
    if taken := [display_path(file) for file in files if file.exists()]:
        raise UsageError(f"already there: {', '.join(taken)}; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        file.write_text(text, "utf-8")
    return list(files)


def _text(file: Path, problems: list[Problem]) -> str | None:
    """Returns the text of a template; None after adding what is wrong with it."""
    name = display_path(file)
    try:
        text = read_regular(file, LONGEST_TEMPLATE, follow=True).decode("utf-8-sig")
    except (OSError, NotRegular, UnicodeDecodeError) as error:
        problems.append(Problem(name, f"cannot be read: {error}", "a text file in UTF-8"))
        return None
    # Templates have Unix line ends, whatever the editor: their line ends are part of the prompt.
    text = text.replace("\r\n", "\n")
    found = [
        Problem(f"{name}:{each.line}" if each.line else name, each.what, each.remedy)
        for each in template_problems(file.stem, text)
    ]
    if not text.strip():
        found = [Problem(name, "is empty", "delete it to use the built-in template")]
    if len(text) > LONGEST_TEMPLATE:
        found = [Problem(name, f"has more than {LONGEST_TEMPLATE:,} characters")]
    problems.extend(found)
    return None if found else text
