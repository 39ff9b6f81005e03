import re
from pathlib import Path

import pytest

import signoff.skills.library
from signoff.skills.texts import texts_beside

LIBRARY = Path(signoff.skills.library.__file__).parent


def test_texts_are_read_by_name(tmp_path: Path) -> None:
    """A heading inside a text is part of it, so only the comments separate texts."""
    (tmp_path / "skill.md").write_text(
        "Not part of any text.\n\n<!-- scope -->\n\nRead it.\n\n# Done\n<!-- not.a name -->\n\n"
        "<!-- notes.md -->\n\n# Notes\n"
    )

    texts = texts_beside(str(tmp_path / "skill.py"))

    assert texts == {"scope": "Read it.\n\n# Done\n<!-- not.a name -->", "notes.md": "# Notes"}


@pytest.mark.parametrize("file", sorted(LIBRARY.glob("*.md")), ids=lambda file: file.stem)
def test_every_text_of_the_library_is_used(file: Path) -> None:
    """A text that no step uses would be edited in vain."""
    source = file.with_suffix(".py").read_text()

    used = set(re.findall(r"TEXTS\[[\"']([\w.-]+)[\"']\]", source))

    assert used == texts_beside(str(file)).keys()
