"""Approvals are checked again from what is stored, and whatever was changed shows."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff import Approval, Outcome, StepContext, StepDef, Workflow
from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.people.passkeys import check_approvals, remove_passkey
from signoff.app.runs.runs import move_run
from signoff.app.settings.home import init_home
from signoff.app.settings.project import Project
from signoff.runtime.store_port import InboxItem
from signoff.store.sqlite import MemoryStore
from tests.software_authenticator import (
    ORIGIN,
    SoftwareAuthenticator,
    register_passkey,
    sign_answer,
)
from tests.store_suite.journal_writer import new_request, start_run

YES = AnswerInput(True, "fine", "ann")


async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
    """Has two texts approved: only the first needs a signature."""
    await ctx.wait(Approval("Ship?", "the text", presence=True))
    await ctx.wait(Approval("Sure?", "the rest"), key="again")
    return Outcome.OK, {}


FLOW = Workflow("asking", StepDef("only", handler=work, next={Outcome.OK: None}))


async def approved(project: Project) -> None:
    """Approves the first text with a passkey, and the second one without."""
    authenticator = SoftwareAuthenticator()
    register_passkey(project.home, authenticator, "laptop")
    async with project.engine() as engine:
        (first,) = (await engine.start(FLOW, name="one")).inbox
        record_answer(project, first.id, sign_answer(project, first.id, YES, authenticator))
        (second,) = (await engine.resume("one", FLOW)).inbox
        record_answer(project, second.id, YES)
        await engine.resume("one", FLOW)


async def test_a_signature_is_checked_long_after(project: Project, tmp_path: Path) -> None:
    """An auditor has the database and the file of passkeys, and no authenticator."""
    await approved(project)

    signed, unsigned = check_approvals(project, "one")

    assert (signed.passkey, signed.by, signed.value, signed.origin) == (
        "laptop",
        "ann",
        True,
        ORIGIN,
    )
    assert (signed.required, signed.problem) == (True, "")
    assert (unsigned.required, unsigned.passkey, unsigned.problem) == (False, "", "")


async def test_a_removed_passkey_still_proves_what_it_signed(project: Project) -> None:
    """People change their devices, and their earlier approvals remain theirs."""
    await approved(project)
    remove_passkey(project.home.passkeys, "laptop", 5.0)

    assert not [each.problem for each in check_approvals(project) if each.problem]


async def test_a_signature_survives_a_move_to_another_store(project: Project) -> None:
    """The run's requests have other numbers there, and its approvals are still approvals."""
    await approved(project)
    before = [each.request for each in check_approvals(project, "one")]
    target = MemoryStore()
    start_run(target, "other").append(opened=[new_request()])

    move_run(project.store, target, "one", "elsewhere")

    found = check_approvals(replace(project, store=target), "one")
    assert [each.problem for each in found] == ["", ""]
    assert found[0].passkey == "laptop"
    assert [each.request for each in found] != before


async def test_an_unknown_passkey_proves_nothing(project: Project, tmp_path: Path) -> None:
    """The auditor can bring a file of passkeys that no agent has touched."""
    await approved(project)
    other = init_home(tmp_path / "reviewed", {}).home
    register_passkey(other, SoftwareAuthenticator(), "laptop")

    signed, _ = check_approvals(project, "one", other.passkeys)

    assert "no passkey of this project" in signed.problem
    assert signed.passkey == ""


class ChangedStore(MemoryStore):
    """A database that someone has edited."""

    def __init__(self, store: MemoryStore, change: Callable[[InboxItem], InboxItem]) -> None:
        self.__dict__ = store.__dict__
        self._change = change

    def items(self, *args: Any, **options: Any) -> list[InboxItem]:
        """Returns requests as they were changed."""
        return [self._change(each) for each in super().items(*args, **options)]


def other_answer(**changed: Any) -> Callable[[InboxItem], InboxItem]:
    def change(item: InboxItem) -> InboxItem:
        return item._replace(answer=json.dumps({**json.loads(item.answer or "{}"), **changed}))

    return change


def other_form(item: InboxItem) -> InboxItem:
    return item._replace(form=item.form.replace("the text", "another text"))


@pytest.mark.parametrize(
    "change",
    [
        other_answer(text="and more"),
        other_answer(presence=None),
        other_answer(extras={"command": "force"}),
        other_form,
        lambda item: item._replace(answered_by="bob"),
        lambda item: item._replace(opened_at=item.opened_at + 1),
        lambda item: item._replace(digest="0" * 64),
        lambda item: item._replace(run="two"),
    ],
    ids="text signature extras form by opened digest run".split(),
)
async def test_whatever_is_changed_later_shows(
    project: Project, change: Callable[[InboxItem], InboxItem]
) -> None:
    """A file that anything can edit must not be able to say that a human approved it."""
    await approved(project)
    assert isinstance(project.store, MemoryStore)
    changed = replace(project, store=ChangedStore(project.store, change))

    assert check_approvals(changed, "one")[0].problem
