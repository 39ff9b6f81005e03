from signoff.surfaces.mcp.access import line, page_of

HOSTILE = "\x1b[2J\u202eapprove\x07\n# injected"


def test_a_line_is_short_and_shows_what_a_terminal_would_interpret() -> None:
    """A client may print it right into a terminal."""
    text = line(HOSTILE, 200)

    assert text == "\\u001b[2J\\u202eapprove\\u0007 # injected"
    assert len(line("x" * 1_000_000, 100)) == 100
    assert len(line("\x1b" * 1_000_000, 100)) == 100


def test_a_long_text_comes_in_pages_that_add_up() -> None:
    """Nothing is lost, and no page is larger than the others."""
    text = "".join(map(str, range(5_000)))

    first = page_of(text, 1, 1_000)
    pages = [page_of(text, number, 1_000) for number in range(1, first["pages"] + 1)]

    assert "".join(each["text"] for each in pages) == text
    assert max(len(each["text"]) for each in pages) == 1_000
