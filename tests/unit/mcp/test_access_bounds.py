from signoff.mcp.access import line, page_of, without_empty

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


def test_a_page_that_does_not_exist_is_the_nearest_one() -> None:
    """An agent that counts wrong gets text, and the right number with it."""
    assert page_of("abcdef", 9, 4) == {"page": 2, "pages": 2, "text": "ef"}
    assert page_of("abcdef", -1, 4)["text"] == "abcd"
    assert page_of("", 1) == {"page": 1, "pages": 1, "text": ""}


def test_control_characters_of_a_page_are_escaped() -> None:
    assert page_of("a\x1b[31mb\nc", 1)["text"] == "a\\u001b[31mb\nc"


def test_what_says_nothing_is_left_out() -> None:
    assert without_empty({"a": "", "b": 0, "c": [], "d": None, "e": False}) == {"b": 0, "e": False}
