import json
from http import HTTPStatus

import pytest

from signoff.core import errors as er
from signoff.core.remedies import ShowRun
from signoff.surfaces.web.problems import problem_of, problem_response, status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (er.UnknownName("run", "x"), 404),
        (er.UnknownName("agent", "x"), 400),
        (er.RequestClosed(), 409),
        (er.NameTaken(), 409),
        (er.StaleApproval(), 412),
        (er.InvalidAnswer(), 422),
        (er.InvalidParams([]), 422),
        (er.StoreBusy(), 503),
        (er.NotAllowed(), 403),
        (er.EngineError(), 500),
    ],
)
def test_a_client_can_tell_what_to_do_from_the_status(error: er.SignoffError, status: int) -> None:
    """A stale answer is shown again, a busy database is tried again, a bad value is corrected."""
    assert status_of(error) == HTTPStatus(status)


def test_a_problem_has_its_kind_and_its_remedies_as_data() -> None:
    """A client must not have to read sentences."""
    problems = [er.Problem("goal", "is missing", "add it")]
    error = er.InvalidWorkflow("docs", problems, remedy=ShowRun("first"))

    document = json.loads(bytes(problem_response("/api/", problem_of(error)).body))

    assert document["kind"] == "InvalidWorkflow"
    assert document["status"] == 422
    assert document["problems"] == [{"where": "goal", "what": "is missing", "fix": "add it"}]
    assert document["remedies"] == [{"kind": "show_run", "run": "first"}]
