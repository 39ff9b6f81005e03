"""Approvals that need the signature of a passkey, and everything that is no such signature."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff import Approval, Choice, Outcome, StepContext, StepDef, Workflow
from signoff.app.people import answering
from signoff.app.people.passkeys import Proof, remove_passkey, signing_options
from signoff.app.settings.project import Project
from signoff.core.errors import ConfigError, PresenceRequired, RequestClosed, SignatureRefused
from signoff.core.outcome import Status
from signoff.core.remedies import SignOnPage
from signoff.core.requests import Request
from signoff.runtime.store_port import InboxItem
from tests.software_authenticator import (
    ORIGIN,
    PRESENT,
    VERIFIED,
    SoftwareAuthenticator,
    register_passkey,
    sign_answer,
)

YES = answering.AnswerInput(True, "fine", "ann")
SHIP = Approval("Ship?", "the text", presence=True)


def asking(request: Request) -> Workflow:
    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        answer = await ctx.wait(request)
        return Outcome.OK, {"value": answer.value, "signed": dict(answer.presence)}

    return Workflow("asking", StepDef("only", handler=work, next={Outcome.OK: None}))


async def waiting(project: Project, request: Request = SHIP, name: str = "one") -> InboxItem:
    async with project.engine() as engine:
        (item,) = (await engine.start(asking(request), name=name)).inbox
    return item


@pytest.fixture
def authenticator(project: Project) -> SoftwareAuthenticator:
    """The human's authenticator, whose passkey is registered."""
    found = SoftwareAuthenticator()
    register_passkey(project.home, found, "laptop")
    return found


async def test_a_signature_approves_and_is_stored_with_the_answer(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """What was signed, by which passkey, has to be there when someone asks later."""
    item = await waiting(project)

    answering.record_answer(project, item.id, sign_answer(project, item.id, YES, authenticator))

    async with project.engine() as engine:
        result = await engine.resume("one", asking(SHIP))
    assert result.status is Status.COMPLETED
    assert result.state["value"] is True
    stored = result.state["signed"]
    assert (stored["passkey"], stored["rp_id"], stored["origin"]) == ("laptop", "localhost", ORIGIN)
    described = answering.request_to_json(project, project.store.item(item.id))
    assert described["presence"] is True
    assert (described["answer"] or {})["presence"] == stored


async def test_no_answer_without_a_signature_approves(project: Project) -> None:
    """The command line, files, REST and MCP all end here, and none of them has a passkey."""
    item = await waiting(project)

    for attempt in (YES, replace(YES, digest=item.digest), answering.AnswerInput(True)):
        with pytest.raises(PresenceRequired):
            answering.record_answer(project, item.id, attempt)
    with pytest.raises(PresenceRequired) as refused:
        answering.decide(project, item.id, YES, yes=True)

    assert refused.value.remedies == (SignOnPage(item.id),)
    assert project.store.item(item.id).answer is None


async def test_no_command_is_offered_that_would_be_refused(project: Project) -> None:
    """A command that is printed and then refused only confuses; rejecting has one."""
    choice = Choice("Go?", ["yes", "no"], presence=True, approves=("yes",))
    first, second = await waiting(project), await waiting(project, choice, name="two")

    for item, left in [(first, "reject"), (second, "answer")]:
        page, other = answering.request_to_json(project, item)["commands"]
        assert page == "signoff web --open"
        assert other.startswith(f"signoff {left} {item.id} ")


async def test_rejecting_needs_no_signature(project: Project) -> None:
    """A human must always be able to stop what is wrong, from wherever they are."""
    item = await waiting(project)

    answering.record_answer(project, item.id, answering.AnswerInput(False, "wrong", "ann"))

    assert json.loads(project.store.item(item.id).answer or "{}")["value"] is False


async def test_only_the_options_that_approve_need_a_signature(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """Asking for changes approves nothing; an option that is not listed as harmless does."""
    options = ["approve", "request changes"]
    first = await waiting(project, Choice("Go?", options, presence=True, approves=("approve",)))
    second = await waiting(project, Choice("Go?", options, presence=True), name="two")
    go = answering.AnswerInput("approve", by="ann")

    for item, value in [(first, "approve"), (second, "approve"), (second, "request changes")]:
        with pytest.raises(PresenceRequired):
            answering.record_answer(project, item.id, answering.AnswerInput(value, by="ann"))
    answering.record_answer(project, second.id, sign_answer(project, second.id, go, authenticator))

    answering.record_answer(project, first.id, answering.AnswerInput("request changes", by="ann"))


async def test_a_signature_is_valid_for_one_request_of_one_run(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """Two runs can show the same text, and a human has looked at one of them."""
    first, second = await waiting(project), await waiting(project, name="two")
    assert first.digest == second.digest
    signed = sign_answer(project, first.id, YES, authenticator)

    with pytest.raises(SignatureRefused):
        answering.record_answer(project, second.id, signed)

    answering.record_answer(project, first.id, signed)
    with pytest.raises(RequestClosed):
        answering.record_answer(project, first.id, signed)


@pytest.mark.parametrize(
    "changed",
    [
        {"text": "and delete everything else"},
        {"by": "bob"},
        {"extras": {"command": "force"}},
    ],
    ids=lambda each: next(iter(each)),
)
async def test_a_signature_covers_the_whole_answer(
    project: Project, authenticator: SoftwareAuthenticator, changed: dict[str, Any]
) -> None:
    """Whatever the run gets to see with an approval must be what the human signed."""
    item = await waiting(project)
    signed = sign_answer(project, item.id, YES, authenticator)

    with pytest.raises(SignatureRefused):
        answering.record_answer(project, item.id, replace(signed, **changed))

    assert project.store.item(item.id).answer is None


async def test_a_signature_covers_the_text_that_the_approver_edited(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """An agent could change the file between the signature and its arrival."""
    request = Approval("Ship?", path="draft.md", edits="accept", presence=True)
    item = await waiting(project, request)
    draft = project.folder("one") / "draft.md"
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text("what the human read\n")
    signed = sign_answer(project, item.id, YES, authenticator)
    edited = answering.answer_to_sign(project, item.id, YES, "my own words\n")[1]

    draft.write_text("something else\n")
    with pytest.raises(SignatureRefused):
        answering.record_answer(project, item.id, signed)

    draft.write_text("my own words\n")
    options = signing_options(project.home.passkeys, item, edited, "ann", "localhost")
    proof = Proof(authenticator.sign(options), [ORIGIN])
    done = answering.record_answer(project, item.id, replace(YES, proof=proof))
    assert json.loads(done.answer or "{}")["content"] == "my own words\n"


async def test_a_passkey_of_someone_else_approves_nothing(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """An agent can bring an authenticator of its own, and can name the human's credential."""
    item = await waiting(project)
    stranger = SoftwareAuthenticator()
    impostor = SoftwareAuthenticator(identity=authenticator.identity)

    for each in (stranger, impostor):
        with pytest.raises(SignatureRefused):
            answering.record_answer(project, item.id, sign_answer(project, item.id, YES, each))

    assert project.store.item(item.id).answer is None


@pytest.mark.parametrize(
    "lies",
    [
        {"origin": "http://localhost:9999"},
        {"origin": "http://127.0.0.1:8717"},
        {"origin": "https://evil.example"},
        {"type": "webauthn.create"},
        {"challenge": "AAAA"},
        {"crossOrigin": True},
        {"crossOrigin": None},
    ],
    ids=repr,
)
async def test_a_signature_made_elsewhere_or_for_something_else_is_refused(
    project: Project, authenticator: SoftwareAuthenticator, lies: dict[str, Any]
) -> None:
    """Passkeys of localhost work for every local page; ours is the only one that counts."""
    item = await waiting(project)

    with pytest.raises(SignatureRefused):
        answering.record_answer(
            project, item.id, sign_answer(project, item.id, YES, authenticator, **lies)
        )


@pytest.mark.parametrize("flags", [0, PRESENT, VERIFIED])
async def test_the_authenticator_must_have_verified_its_user(
    project: Project, authenticator: SoftwareAuthenticator, flags: int
) -> None:
    """A touch alone, or no touch at all, does not show who was there."""
    item = await waiting(project)
    authenticator.flags = flags

    with pytest.raises(SignatureRefused):
        answering.record_answer(project, item.id, sign_answer(project, item.id, YES, authenticator))


async def test_a_signature_for_another_host_is_refused(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """The host is part of what is signed, and only the authenticator writes it."""
    item = await waiting(project)
    _, stored = answering.answer_to_sign(project, item.id, YES)
    options = signing_options(project.home.passkeys, item, stored, "ann", "localhost")
    proof = Proof(authenticator.sign({**options, "rpId": "evil.example"}), [ORIGIN])

    with pytest.raises(SignatureRefused):
        answering.record_answer(project, item.id, replace(YES, proof=proof))


@pytest.mark.parametrize(
    "damage",
    [
        {"response": None},
        {"signature": "AAAA"},
        {"signature": 7},
        {"signature": "A" * 50_000},
        {"authenticatorData": "AA"},
        {"clientDataJSON": "W10"},
        {"clientDataJSON": "\u00e9\x00"},
    ],
    ids=lambda each: repr(each)[:40],
)
async def test_a_damaged_signature_is_refused(
    project: Project, authenticator: SoftwareAuthenticator, damage: dict[str, Any]
) -> None:
    """Anyone who is logged in can send anything; it must neither count nor crash."""
    item = await waiting(project)
    signed = sign_answer(project, item.id, YES, authenticator)
    assert signed.proof is not None
    response = damage.get("response", {**signed.proof.reply["response"], **damage})
    reply = {**signed.proof.reply, "response": response}

    with pytest.raises(SignatureRefused):
        answering.record_answer(project, item.id, replace(signed, proof=Proof(reply, [ORIGIN])))


async def test_a_removed_passkey_signs_nothing_more(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """A lost authenticator is removed, and from then on it is worthless."""
    item = await waiting(project)
    signed = sign_answer(project, item.id, YES, authenticator)
    remove_passkey(project.home.passkeys, "laptop", 2.0)

    with pytest.raises(SignatureRefused):
        answering.record_answer(project, item.id, signed)
    with pytest.raises(PresenceRequired):
        sign_answer(project, item.id, YES, authenticator)


async def test_a_passkey_that_was_only_written_into_the_file_signs_nothing(
    project: Project, authenticator: SoftwareAuthenticator, tmp_path: Path
) -> None:
    """An agent can edit files, but it cannot sign for the passkey that is there."""
    agent, elsewhere = SoftwareAuthenticator(), tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = replace(project.home, path=elsewhere)
    register_passkey(other, agent, "backup")
    path = project.home.passkeys
    document = json.loads(path.read_text())
    document["passkeys"] += json.loads(other.passkeys.read_text())["passkeys"]
    path.write_text(json.dumps(document))
    item = await waiting(project)

    with pytest.raises(SignatureRefused):
        answering.record_answer(project, item.id, sign_answer(project, item.id, YES, agent))

    answering.record_answer(project, item.id, sign_answer(project, item.id, YES, authenticator))


@pytest.mark.parametrize("required", [True, False])
async def test_the_settings_can_require_presence_for_every_approval(
    project: Project, required: bool
) -> None:
    """A team that wants it everywhere must not depend on each author to declare it."""
    project.settings = replace(project.settings, presence_required=required)
    approval = await waiting(project, Approval("Ship?", "the text"))
    choice = await waiting(project, Choice("Go?", ["yes", "no"], approves=("yes",)), name="two")
    plain = await waiting(project, Choice("Which?", ["yes", "no"]), name="three")

    for item, value in [(approval, True), (choice, "yes")]:
        if required:
            with pytest.raises(PresenceRequired):
                answering.record_answer(project, item.id, answering.AnswerInput(value))
        else:
            answering.record_answer(project, item.id, answering.AnswerInput(value))
    answering.record_answer(project, plain.id, answering.AnswerInput("yes"))


async def test_a_file_of_passkeys_that_cannot_be_read_lets_no_one_sign(
    project: Project, authenticator: SoftwareAuthenticator
) -> None:
    """Doubt about who may sign must never end in an approval."""
    item = await waiting(project)
    signed = sign_answer(project, item.id, YES, authenticator)
    project.home.passkeys.write_text("{")

    with pytest.raises(ConfigError):
        answering.record_answer(project, item.id, signed)

    assert project.store.item(item.id).answer is None
