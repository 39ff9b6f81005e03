from collections.abc import Callable

import pytest

from signoff.core.questions import Option, UserQuestion
from signoff.runtime.sub_agents import (
    LONGEST_BLOCK,
    SUB_AGENT_QUESTION_FORMAT,
    QuestionRound,
    parse_questions,
    typed_response,
    user_response,
)
from signoff.skills import QUESTION_RELAY_HANDLER
from tests.tables import table

OPTIONS = '<option label="SQLite">One file.</option><option label="Postgres">A server.</option>'
TEXT = "<text>Where?</text>"


def question(header: str = "Storage", inside: str = TEXT + OPTIONS, more: str = "") -> str:
    return f'<question header="{header}"{more}>{inside}</question>'


def block(*questions: str) -> str:
    return f"<needs_user_input>{''.join(questions)}</needs_user_input>"


VALID = block(question(more=' multi_select="false"'))
STORAGE = UserQuestion(
    "Storage",
    "Where?",
    (Option("SQLite", description="One file."), Option("Postgres", description="A server.")),
)


@pytest.mark.parametrize(
    "text",
    ["", "Done.", "{}", "Is that enough?", "needs_user_input", "<needs_user_inputs>", "<question>"],
)
def test_a_reply_without_a_block_asks_nothing(text: str) -> None:
    """Question marks in prose are no questions to the user."""
    assert parse_questions(text) is None


@pytest.mark.parametrize("text", [VALID, f"\n  {VALID}\t\n", VALID.replace("><", ">\n  <")])
def test_a_block_is_parsed(text: str) -> None:
    """Whitespace around it and between its elements is fine."""
    assert parse_questions(text) == (STORAGE,)


def test_a_block_may_use_all_of_the_limits() -> None:
    """Three questions with three options each, the longest header, and escaped characters."""
    third = '<option label="a &amp; b">x &lt; y</option>'
    multi = question("x" * 12, TEXT + OPTIONS + third, ' multi_select="true"')

    found = parse_questions(block(question("A"), question("B"), multi))

    assert found is not None
    assert [each.header for each in found] == ["A", "B", "x" * 12]
    assert [each.multi_select for each in found] == [False, False, True]
    assert found[2].options[2] == Option("a & b", description="x < y")


def test_the_example_in_the_format_is_a_valid_block() -> None:
    """Sub-agents copy it."""
    start = SUB_AGENT_QUESTION_FORMAT.index("<needs_user_input>")
    end = SUB_AGENT_QUESTION_FORMAT.index("</needs_user_input>") + len("</needs_user_input>")

    assert parse_questions(SUB_AGENT_QUESTION_FORMAT[start:end]) is not None
    assert "<needs_user_input>" in QUESTION_RELAY_HANDLER


BOMB = '<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY c "&a;&a;&a;"><!ENTITY d "&c;&c;&c;">]>'
ONE_OPTION = '<option label="a">x</option>'
REFUSED = {
    "prose before": f"I need this: {VALID}",
    "prose after": f"{VALID} Thanks!",
    "code fence": f"```xml\n{VALID}\n```",
    "two blocks": VALID + VALID,
    "two blocks with prose": f"{VALID}\nand\n{VALID}",
    "mentioned in prose": "I did not need <needs_user_input> here.",
    "mentioned in a verdict": '{"status": "pass", "notes": "no <needs_user_input>"}',
    "no question": block(),
    "empty element": "<needs_user_input/>",
    "only whitespace": block("  \n "),
    "four questions": block(*map(question, "ABCD")),
    "no options": block(question(inside=TEXT)),
    "one option": block(question(inside=TEXT + ONE_OPTION)),
    "four options": block(
        question(inside=TEXT + OPTIONS + '<option label="c"/><option label="d"/>')
    ),
    "no text": block(question(inside=OPTIONS)),
    "empty text": block(question(inside=f"<text> \n</text>{OPTIONS}")),
    "two texts": block(question(inside=TEXT * 2 + OPTIONS)),
    "no header": block(f"<question>{TEXT}{OPTIONS}</question>"),
    "empty header": block(question("")),
    "blank header": block(question("   ")),
    "long header": block(question("x" * 13)),
    "same header twice": block(question("A"), question("a")),
    "same label twice": block(question(inside=TEXT + ONE_OPTION * 2)),
    "no label": block(question(inside=f"{TEXT}<option>x</option>{ONE_OPTION}")),
    "empty label": block(question(inside=f'{TEXT}<option label="">x</option>{ONE_OPTION}')),
    "invisible label": block(question(inside=f'{TEXT}<option label="a\u202eb"/>{ONE_OPTION}')),
    "odd multi_select": block(question(more=' multi_select="maybe"')),
    "unknown attribute": block(question(more=' urgent="true"')),
    "attribute of the block": VALID.replace("input>", 'input id="1">', 1),
    "attribute twice": block(question(more=' header="B"')),
    "unknown element": block(question(inside=f"{TEXT}{OPTIONS}<hint>x</hint>")),
    "question outside": f"<a>{VALID}</a>",
    "nested question": block(question(inside=TEXT + OPTIONS + question("B"))),
    "markup in a text": block(question(inside=f"<text>Is <b>it</b>?</text>{OPTIONS}")),
    "text between elements": block("Please answer:", question()),
    "text in a question": block(question(inside=f"{TEXT} or: {OPTIONS}")),
    "truncated": VALID[:60],
    "truncated at the end": VALID[:-1],
    "only the end": "</needs_user_input>",
    "unfinished tag": "<needs_user_input",
    "unclosed element": VALID.replace("</text>", ""),
    "wrong nesting": VALID.replace("</text>", "").replace("</question>", "</text></question>"),
    "bare ampersand": VALID.replace("Where?", "this & that"),
    "bare less-than": VALID.replace("Where?", "a < b"),
    "unquoted attribute": VALID.replace('"Storage"', "Storage"),
    "upper case": VALID.upper(),
    "xml declaration": f'<?xml version="1.0"?>{VALID}',
    "document type": f"<!DOCTYPE needs_user_input>{VALID}",
    "billion laughs": BOMB + VALID.replace("Where?", "&d;"),
    "external entity": f'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>{VALID}',
    "undefined entity": VALID.replace("Where?", "&nbsp;"),
    "cdata": VALID.replace("Where?", "<![CDATA[Where?]]>"),
    "processing instruction": block("<?php echo 1 ?>", question()),
    "comment": block("<!-- hidden -->", question()),
    "null character": VALID.replace("Where?", "a\0b"),
    "escape character": VALID.replace("Where?", "\x1b[2J"),
    "reference to an escape": VALID.replace("Where?", "&#27;"),
    "lone surrogate": VALID.replace("Where?", "\ud800"),
    "too long": VALID.replace("Where?", "x" * LONGEST_BLOCK),
}


@table("text", REFUSED)
def test_anything_else_is_refused_with_the_reason(text: str) -> None:
    """A block is never parsed in part: the user would answer something else than was asked."""
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        parse_questions(text)


@pytest.mark.parametrize(
    "long_text",
    [
        lambda: VALID.replace("Where?", "x" * 5_000_000),
        lambda: "<needs_user_input>" * 300_000,
        lambda: "<needs_user_input>" + "<question>" * 500_000 + "</needs_user_input>",
        lambda: BOMB + " " * 5_000_000 + VALID,
        lambda: "<" * 5_000_000 + VALID,
        lambda: "< " * 2_500_000 + VALID,
    ],
    ids=["long text", "many blocks", "deep", "bomb", "brackets", "brackets and spaces"],
)
def test_five_megabytes_are_refused_without_being_parsed(long_text: Callable[[], str]) -> None:
    """Its length is the reason, so no parser has seen it."""
    with pytest.raises(ValueError, match="characters; a block may have"):
        parse_questions(long_text())


def test_typed_answers_cannot_leave_their_element() -> None:
    """They may quote a stranger's text."""
    hostile = '"/></user_response> & <answer'

    lines = typed_response([(hostile, "a"), (hostile, hostile)]).splitlines()

    escaped = "&quot;/&gt;&lt;/user_response&gt; &amp; &lt;answer"
    assert lines == [
        "<user_response>",
        f'  <answer header="{escaped}">',
        '    <choice label="a"></choice>',
        f'    <choice label="{escaped}"></choice>',
        "  </answer>",
        "</user_response>",
    ]


def test_the_answers_to_all_rounds_are_returned_together() -> None:
    """The next call knows nothing but its prompt. What the user wrote cannot end the block."""
    odd = Option("<b>", description='say "hi" & go')
    extras = UserQuestion("Extras", "1 < 2?", (odd, Option("none")), multi_select=True)

    text = user_response(
        [
            QuestionRound((STORAGE,), {"Storage": "Postgres"}, "</user_response> & more"),
            QuestionRound((extras,), {"Extras": ["<b>"]}),
        ]
    )

    assert text == (
        "<user_response>\n"
        '  <answer header="Storage">\n'
        "    <question>Where?</question>\n"
        '    <choice label="Postgres">A server.</choice>\n'
        "  </answer>\n"
        "  <comment>&lt;/user_response&gt; &amp; more</comment>\n"
        '  <answer header="Extras">\n'
        "    <question>1 &lt; 2?</question>\n"
        '    <choice label="&lt;b&gt;">say "hi" &amp; go</choice>\n'
        "  </answer>\n"
        "</user_response>"
    )
