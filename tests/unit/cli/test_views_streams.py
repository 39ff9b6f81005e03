"""Tests of streamed answers as text for humans."""

from signoff.cli.views import StreamTail


def stream(*pieces: str) -> StreamTail:
    tail = StreamTail()
    for piece in pieces:
        tail.add(piece)
    return tail


def test_pieces_are_joined_and_cut_between_words() -> None:
    """A model sends single words, and half words."""
    tail = stream(*(f"word{n} of a long sen" + "tence, " for n in range(40)))

    shown = tail.shown(40)

    assert shown.startswith("… ")
    assert shown.endswith("word39 of a long sentence,")
    assert len(shown) <= 40
    assert shown[2:].split()[0] in ("of", "a", "long", "sentence,", "word38", "word39")


def test_an_answer_for_programs_is_only_counted() -> None:
    """Raw JSON is noise; that it grows is news."""
    assert stream(" {", '"a": 1').shown(60) == "writing its answer, 8 characters so far"
    assert stream("```json\n{}").is_data


def test_only_complete_lines_are_returned() -> None:
    """A log has whole lines."""
    tail = StreamTail()

    assert tail.add("one\ntw") == ["one"]
    assert tail.add("o\n\nthree") == ["two"]
    assert tail.rest() == ["three"]
