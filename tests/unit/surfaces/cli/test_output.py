import json

import pytest

from signoff.surfaces.cli.output import Output


def test_a_table_that_goes_into_a_pipe_is_plain_and_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A name cut with an ellipsis cannot be pasted into the next command."""
    Output().table(("RUN", "REASON"), [("a" * 90, "long\nreason"), ("b", "\x1b[31mred")])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["RUN", "REASON"]
    assert lines[1] == f"{'a' * 90}  long reason"
    assert lines[2].split() == ["b", "red"]


@pytest.mark.parametrize(
    ("rows", "printed"), [([("one", 1)], "RUN  STEPS\none  1\n"), ([], "no runs\n")], ids=str
)
def test_a_list_is_a_table_or_says_that_it_is_empty(
    capsys: pytest.CaptureFixture[str], rows: list[tuple[str, int]], printed: str
) -> None:
    """A heading without rows looks like an error."""
    Output().listing([{"run": name} for name, _ in rows], ("RUN", "STEPS"), rows, "no runs")

    assert capsys.readouterr().out == printed


def test_with_json_a_result_is_its_document_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """A program parses all of stdout."""
    out = Output(as_json=True)

    out.show({"run": "one"}, "deleted  one")
    out.listing([{"run": "one"}], ("RUN",), [("one",)])

    decoder, text = json.JSONDecoder(), capsys.readouterr().out
    first, end = decoder.raw_decode(text)
    assert (first, json.loads(text[end:])) == ({"run": "one"}, [{"run": "one"}])
