import pytest

from signoff.app.runs.next_commands import error_message, next_command
from signoff.core import remedies as fix
from signoff.core.errors import RunBusy
from tests.tables import table

EXAMPLES: list[fix.Remedy] = [
    fix.RaiseLimit("usd"),
    fix.RaiseLimit("calls", "step"),
    fix.RaiseRounds(),
    fix.Resume(),
    fix.Resume(adopt=True),
    fix.Resume(agent="claude"),
    fix.ResumeDue(),
    fix.ResumeDue(5.0),
    fix.StartRun(),
    fix.StartRun(again=True, run="one"),
    fix.StartWorker(),
    fix.CancelRun(),
    fix.ShowRun(),
    fix.WatchRun(),
    fix.TakeWork(),
    fix.ShowInbox(),
    fix.AnswerRequest(7),
    fix.PassOption("allow_scripts"),
    fix.InitProject(),
    fix.TrustProject(),
    fix.CheckSetup(),
    fix.ShowSettings(),
    fix.OpenPage(),
    fix.CreateToken("decide"),
    fix.SignOnPage(7),
    fix.AddPasskey(),
    fix.Login("claude"),
    fix.Install("local"),
    fix.PullModel("smollm2-135m"),
    fix.ChooseModel(("a", "b")),
    fix.ListBackups(),
    fix.AddFallback("claude"),
    fix.SetUpDatabase(),
    fix.SetUpStore(),
    fix.SetPassword(),
]


def test_every_remedy_has_a_text() -> None:
    """An error with an unknown remedy would end in a traceback."""
    assert {type(remedy) for remedy in EXAMPLES} == set(fix.Remedy.kinds.values())
    assert all(next_command(remedy, "one") for remedy in EXAMPLES)


@table("remedy", EXAMPLES)
def test_a_stored_remedy_is_read_back_unchanged(remedy: fix.Remedy) -> None:
    """Errors are stored in the journal with what fixes them."""
    assert fix.Remedy.from_json(remedy.to_json()) == remedy


@pytest.mark.parametrize(
    ("remedy", "command"),
    [
        (fix.RaiseLimit("usd"), "signoff resume one --limit usd=NUMBER"),
        (fix.RaiseLimit("usd", "step"), "signoff resume one --adopt"),
        (fix.Resume("other"), "signoff resume other"),
        (fix.StartWorker(), "start one: signoff worker"),
        (fix.StartWorker(("gpu", "two words")), "worker --capability gpu --capability 'two words'"),
        (
            fix.StartWorker(("agent:claude", "folder:/srv/book", "host:desk")),
            "start one that has agent:claude, folder:/srv/book, host:desk: signoff worker",
        ),
        (fix.Resume(agent="auto", instead="manual"), "signoff resume one --agent auto=manual"),
        (fix.ShowInbox(7), "signoff inbox 7"),
        (fix.AnswerRequest(7, ("yes", "not yet")), "signoff answer 7 yes|'not yet'"),
        (fix.PassOption("allow_scripts"), "--allow-scripts"),
        (fix.PassOption("limit", "calls=NUMBER"), "--limit calls=NUMBER"),
    ],
)
def test_a_remedy_names_the_exact_command(remedy: fix.Remedy, command: str) -> None:
    """It is copied and pasted."""
    assert next_command(remedy, "one").endswith(command)


def test_an_error_is_shown_with_its_remedy() -> None:
    """One line shows what is wrong and what to type."""
    error = RunBusy("run 'one' is busy", remedy=(fix.CancelRun("one"), fix.ShowRun("one")))

    assert error_message(error) == (
        "run 'one' is busy; stop it: signoff cancel one; details: signoff show one"
    )
