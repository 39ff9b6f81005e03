from pathlib import Path

from signoff.documents.named_texts import NamedText, named_texts, read_texts


def test_only_comments_with_a_name_begin_a_text(tmp_path: Path) -> None:
    """Headings and other comments are part of the text that they are in."""
    file = tmp_path / "skill.md"
    file.write_text(
        "Not a text.\n\n<!-- scope: Read it -->\n\nRead.\n\n# Done\n<!-- not a name -->\n\n"
        "<!-- notes.md -->\n\n# Notes\n"
    )

    assert list(named_texts(file)) == [
        NamedText("scope", "Read it", "Read.\n\n# Done\n<!-- not a name -->"),
        NamedText("notes.md", "", "# Notes"),
    ]
    assert read_texts(file)["notes.md"] == "# Notes"
