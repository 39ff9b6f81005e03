"""The page of a request, and the answers that are given there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from signoff.app.people import answering
from signoff.app.people.passkeys import signing_options
from signoff.app.runs.history import form_of
from signoff.app.runs.runs import catch_up, current_row
from signoff.app.settings.project import Project
from signoff.app.workers.hand_over import continue_run
from signoff.core import errors as er
from signoff.core.digest import SHORT
from signoff.core.requests import (
    AnswerForm,
    Edits,
    ItemState,
    RequestKind,
    needs_presence,
    request_word,
)
from signoff.documents.control_characters import CONTROL, json_text, shown_text
from signoff.runtime.store_port import InboxItem
from signoff.surfaces.web.route_params import (
    SANDBOX,
    Decider,
    FormFields,
    OpenProject,
    SentForm,
    followed_runs,
)
from signoff.surfaces.web.views import passkeys
from signoff.surfaces.web.views.frame import Live, events_path, show_page
from signoff.views.pages.html import Content, Markup, ago, join, run_path, sentence, tag, until
from signoff.views.pages.markdown import is_markdown, rendered_files
from signoff.views.pages.review import MOST_TEXT, review_context, shown_better, unified_html

_SHORT = 120
"""Characters of a value that is shown on one line."""
_LONG = 400
"""Characters of a prompt that is shown as text; a longer one is shown as it was written."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Draft:
    """What a human had entered when an answer was refused, and why it was."""

    problem: str
    text: str = ""
    value: str = ""
    stale: bool = False
    """Whether the page showed something else than what is to be decided now."""


@dataclass(frozen=True)
class RequestPage:
    """What the page of a request shows."""

    request: Mapping[str, Any]
    """The request as plain values."""
    now: float
    draft: Draft | None = None
    file: answering.FileDraft | None = None
    """The file of an approval that its approver may edit first."""
    context: Markup | None = None
    """What helps to decide: findings, changes, the cost."""
    better: Mapping[str, Markup] = field(default_factory=dict)
    """How some of what is shown is shown better than as plain text, by name."""


@router.get("/requests/{number}")
def show_request(request: Request, project: OpenProject, number: int) -> Response:
    """Shows a request and the form that answers it."""
    return _page(request, project, project.store.item(number))


@router.get("/requests/{number}/shown/{index}")
def show_all(project: OpenProject, number: int, index: int) -> Response:
    """Sends one of the texts that a request shows, in full."""
    _, text = _shown(project, number, index)
    headers = {"content-security-policy": SANDBOX}
    return Response(text.encode("utf-8", "replace"), media_type="text/plain", headers=headers)


@router.get("/requests/{number}/rendered/{index}")
def show_rendered(request: Request, project: OpenProject, number: int, index: int) -> Response:
    """Shows one of the texts of a request as its readers will see it."""
    name, text = _shown(project, number, index)
    back = f"/requests/{number}"
    title = f"{shown_title(name)}, rendered"
    return show_page(
        request, project, title,
        tag("p", tag("a", f"← Request #{number}", href=back), class_="small"), tag("h1", title),
        rendered_files({"": text}, back),
    )  # fmt: skip


def _shown(project: Project, number: int, index: int) -> tuple[str, str]:
    """Returns the name and the whole of one of the texts that a request shows."""
    shown = list(answering.request_to_json(project, project.store.item(number))["shown"].items())
    if not 0 <= index < len(shown):
        raise er.UnknownName("text", str(index), map(str, range(len(shown))))
    name, value = shown[index]
    return name, shown_text(value)


@router.post("/requests/{number}")
def answer(
    request: Request, project: OpenProject, caller: Decider, number: int, form: SentForm
) -> Response:
    """Records an answer and hands the run to a worker."""
    item = project.store.item(number)
    try:
        given = replace(
            _sent_answer(project, item, form, caller.name),
            proof=passkeys.sent_proof(request, form, "assertion"),
        )
        answered = _record(project, item, form, given)
    except er.SignoffError as error:
        draft = _draft(form, error)
        return _page(request, project, project.store.item(number), draft)
    catch_up(project, answered.run, repair=False)
    # The answer is recorded, whatever becomes of the run: its page shows how to continue it.
    with suppress(er.SignoffError):
        continue_run(project, answered.run)
    return RedirectResponse(f"{run_path(answered.run)}?done={number}", 303)


@router.post("/requests/{number}/challenge")
def challenge(
    request: Request, project: OpenProject, caller: Decider, number: int, form: SentForm
) -> Response:
    """Sends what a browser needs to sign the answer in a form; null if it needs no signature."""

    def compute() -> Mapping[str, Any] | None:
        item = project.store.item(number)
        answer = _sent_answer(project, item, form, caller.name)
        item, stored = answering.answer_to_sign(project, number, answer, _edited_content(form))
        if not needs_presence(form_of(project, item), stored["value"]):
            return None
        host = passkeys.host_for_passkeys(request)
        return signing_options(project.home.passkeys, item, stored, caller.name, host)

    return passkeys.browser_options(compute)


def _sent_answer(
    project: Project, item: InboxItem, form: FormFields, by: str
) -> answering.AnswerInput:
    """Returns the answer in a form; raises `InvalidAnswer` if it does not say what it is about."""
    digest = form.one("digest")
    # Without it, an approval would count for whatever the request shows by the time it arrives.
    if not digest:
        raise er.InvalidAnswer("the digest of what was shown is missing; reload the page")
    return answering.AnswerInput(_value(project, item, form), form.one("text").strip(), by, digest)


def _edited_content(form: FormFields) -> str | None:
    """Returns the text that the approver has put into the file of an approval, if any."""
    return form.one("content") if "content" in form.values else None


def _record(
    project: Project, item: InboxItem, form: FormFields, given: answering.AnswerInput
) -> InboxItem:
    content = _edited_content(form)
    if given.value is True and content is not None:
        return answering.approve_edited(project, item.id, given, content, form.one("file_digest"))
    return answering.record_answer(project, item.id, given)


def _value(project: Project, item: InboxItem, form: FormFields) -> object:
    match item.kind.answer_form:
        case AnswerForm.DECISION:
            # Anything else is None, which is no answer and refused: no form approves by accident.
            return {"approve": True, "reject": False}.get(form.one("action"))
        case AnswerForm.PICKS:
            return _chosen(project, item, form)
        case AnswerForm.PICK | AnswerForm.TEXT | AnswerForm.WORK:
            return form.one("value")


def _chosen(project: Project, item: InboxItem, form: FormFields) -> dict[str, list[str]]:
    questions = answering.request_to_json(project, item)["questions"]
    chosen = {
        each["header"]: form.values.get(f"question-{n}", []) for n, each in enumerate(questions)
    }
    return {header: labels for header, labels in chosen.items() if labels}


def _draft(form: FormFields, error: er.SignoffError) -> Draft:
    match error:
        case er.RequestClosed():
            problem, stale = sentence(f"Your answer was not recorded: {error}"), True
        case er.StaleApproval():
            words = f"This page was out of date, so your answer was not recorded: {error}"
            problem, stale = sentence(words), True
        case er.InvalidAnswer():
            problem, stale = sentence(str(error)), False
        # A locked database is no fault of the answer; its page says so, and it can be sent again.
        case _:
            raise error
    return Draft(problem, form.one("text"), form.one("content") or form.one("value"), stale)


def _page(
    request: Request, project: Project, item: InboxItem, draft: Draft | None = None
) -> Response:
    row = current_row(project, project.store.row(item.run))
    described = answering.request_to_json(project, item)
    with followed_runs(request).look(project, row) as run:
        history = run.review
        page = RequestPage(
            request=described,
            now=project.clock.now(),
            draft=draft,
            file=answering.file_to_edit(project, item),
            context=review_context(item.run, history) if history else None,
            better=shown_better(described, history) if history else {},
        )
        parts = list(request_page(page))
    live = Live(events_path(row), f"/requests/{item.id}")
    title, status = f"Request #{item.id}", 200 if draft is None else 409 if draft.stale else 422
    return show_page(request, project, title, parts, live=live, wide=True, status=status)


def request_page(page: RequestPage) -> Iterator[Markup]:
    """Yields the parts of the page: what is shown on the left, the decision on the right."""
    request = page.request
    run = tag("a", request["run"], href=run_path(request["run"]))
    what = f" · {request['step']} · {request_word(request)} #{request['number']} · "
    yield tag("p", run, what, ago(request["opened_at"], page.now), class_="soft small")
    yield tag("h1", _title(request))
    content = join([_prompt(request), join(shown(page)), page.context])
    form = tag("div", tag("div", _decision(page), class_="card decide"), class_="side", id="decide")
    if not content:
        yield tag("div", form, class_="alone")
        return
    yield tag("p", tag("a", "Go to your decision", href="#decide"), class_="jump small")
    style = "columns even" if _kind(request) is AnswerForm.WORK else "columns"
    yield tag("div", tag("div", content, class_="content"), form, class_=style)


def _kind(request: Mapping[str, Any]) -> AnswerForm:
    return RequestKind(request["kind"]).answer_form


def _title(request: Mapping[str, Any]) -> str:
    if request.get("title"):
        return str(request["title"])
    prompt = str(request["prompt"]).strip()
    short = len(prompt) <= _LONG and "\n" not in prompt
    return prompt if short else request_word(request).capitalize()


def _prompt(request: Mapping[str, Any]) -> Markup | None:
    prompt = str(request["prompt"])
    if prompt.strip() == _title(request):
        return None
    if _kind(request) is not AnswerForm.WORK:
        return tag("pre", prompt, class_="prompt")
    summary = tag("summary", "The prompt to answer")
    return tag("details", summary, tag("pre", prompt, class_="prompt"), open=True)


def shown(page: RequestPage) -> Iterator[Markup]:
    """Yields everything that the answer is bound to, in its order; short facts share a list."""
    request, better = page.request, page.better
    facts: list[Content] = []
    for name, value in request["shown"].items():
        text = shown_text(value)
        title = shown_title(name)
        if value is None or (len(text) <= _SHORT and "\n" not in text and name != "content"):
            facts += [tag("dt", title), tag("dd", "(empty)" if value is None else text)]
        else:
            body = better.get(name) or _text(text, request, name)
            link = _rendered_link(request, name, text)
            yield from _facts_list(facts)
            yield tag("section", tag("h2", title), link, body)
            facts = []
    if request["shown"] != {"content": None}:
        yield from _facts_list(facts)


def _facts_list(facts: Sequence[Content]) -> Iterator[Markup]:
    if facts:
        yield tag("dl", facts, class_="facts-list card")


def shown_title(name: str) -> str:
    """Returns the heading of something that a request shows."""
    return {"content": "What you decide about", "artifact": "The text"}.get(
        name, name.replace("_", " ").capitalize()
    )


def _rendered_link(request: Mapping[str, Any], name: str, text: str) -> Markup | None:
    """Returns the way to the rendered text, if it may be Markdown."""
    path = str(request.get("path") or "") if name == "content" else ""
    if not isinstance(request["shown"][name], str) or _is_diff(text) or not is_markdown(path):
        return None
    index = list(request["shown"]).index(name)
    link = tag("a", "Rendered", href=f"/requests/{request['number']}/rendered/{index}")
    return tag("p", tag("span", "Source", aria_current="true"), " · ", link, class_="small")


def _is_diff(text: str) -> bool:
    return text.startswith("--- ") and "\n+++ " in text


def _text(text: str, request: Mapping[str, Any], name: str) -> Content:
    if not text.strip():
        return tag("p", "(empty)", class_="soft")
    if _is_diff(text) and len(text) <= MOST_TEXT:
        return unified_html(text)
    parts = [tag("pre", text[:MOST_TEXT], class_="shown", tabindex=0)]
    if len(text) > MOST_TEXT:
        rest = f"The rest ({len(text) - MOST_TEXT:,} characters) is not shown here. "
        index = list(request["shown"]).index(name)
        link = tag("a", "Open all of it", href=f"/requests/{request['number']}/shown/{index}")
        parts.append(tag("p", rest, link))
    return parts


def _decision(page: RequestPage) -> Iterator[Markup]:
    request = page.request
    if page.draft is not None:
        kind = "stale" if page.draft.stale else "problem"
        yield tag("p", page.draft.problem, class_=f"notice {kind}", role="alert", id="problem")
    if request["state"] != ItemState.OPEN:
        yield _answered(request, page.now)
        return
    decides = _kind(request) in (AnswerForm.DECISION, AnswerForm.PICK)
    yield tag("h2", "Your decision" if decides else "Your answer", class_="plain")
    deadline = request.get("deadline")
    if deadline is not None and deadline <= page.now:
        words = sentence(f"The deadline passed, and {request['at_deadline']}")
        yield tag("p", words, class_="notice stale")
        return
    if deadline is not None:
        then = sentence(f": then {request['at_deadline']}")
        yield tag("p", "Deadline ", until(deadline, page.now), then, class_="wait small")
    yield _form(page)
    about = ["Your answer is bound to the digest ", tag("code", request["digest"][:SHORT]), "."]
    yield tag("p", about, class_="soft small")


def _answered(request: Mapping[str, Any], now: float) -> Markup:
    answer = request.get("answer")
    if not answer:
        words = "This request was withdrawn: its run no longer needs an answer."
        return tag("p", words, class_="notice")
    value = answer["value"]
    text = f": {answer['text']}" if answer.get("text") else ""
    shown = value if isinstance(value, str) else json_text(value)
    verdicts = {"true": "approved", "false": "rejected"}
    decision = verdicts.get(shown) if isinstance(value, bool) else f"answered {shown!r:.200}"
    signer = (answer.get("presence") or {}).get("passkey")
    signed = f" (signed with passkey {signer})" if signer else ""
    line = [tag("b", f"{decision} by {answer['by'] or 'someone'}{signed}"), text, " · "]
    return tag("p", *line, ago(answer["at"] or now, now), class_="notice", id="answered")


def _form(page: RequestPage) -> Markup:
    request = page.request
    hidden = tag("input", type="hidden", name="digest", value=request["digest"])
    match _kind(request):
        case AnswerForm.DECISION:
            fields = _approval(page)
        case AnswerForm.PICK:
            fields = _options(page)
        case AnswerForm.PICKS:
            fields = _questions(page)
        case AnswerForm.TEXT:
            fields = _answer(page, "Your answer", 5)
        case AnswerForm.WORK:
            fields = _answer(page, "The response", 16)
        case other:
            assert_never(other)
    signature = passkeys.signature_fields(request["number"]) if request.get("presence") else ()
    address = f"/requests/{request['number']}"
    # Named by its digest: a request that shows something else gets a form of its own, and one that
    # is unchanged keeps what was typed when the page is refreshed.
    return tag("form", hidden, *fields, *signature, method="post", action=address, class_="answer",
               id=f"form-{request['digest'][:SHORT]}", hx_morph_skip=True)  # fmt: skip


def _approval(page: RequestPage) -> Iterator[Content]:
    if page.request.get("edits") == Edits.ACCEPT and page.file is not None:
        yield from _editor(page.file, page.draft)
    yield _comment(page.draft, "Comment", "optional; the reason if you reject it")
    yield tag(
        "div",
        tag("button", "Approve", name="action", value="approve", class_="yes"),
        tag("button", "Reject", name="action", value="reject", class_="no"),
        class_="actions",
    )


def _editor(file: answering.FileDraft, draft: Draft | None) -> Iterator[Content]:
    # A browser must give back exactly this text if nothing is changed.
    if CONTROL.search(file.text) or len(file.text) > MOST_TEXT:
        words = f"{file.path} cannot be edited here; edit the file itself, then approve it."
        yield tag("p", words, class_="small soft")
        return
    text = draft.value if draft is not None and draft.value else file.text
    new = "" if file.digest else " (it does not exist yet)"
    yield tag("input", type="hidden", name="file_digest", value=file.digest)
    yield _field("content", f"{file.path}{new}; edit it before you approve, if you want", text, 14)


def _options(page: RequestPage) -> Iterator[Content]:
    options = page.request["options"]
    explained = [str(each["label"]).capitalize() for each in options if each.get("requires_input")]
    hint = f"required for “{'”, “'.join(explained)}”" if explained else "optional"
    yield _comment(page.draft, "Comment", hint)
    buttons = [
        tag(
            "div",
            tag("button", str(each["label"]).capitalize(), name="value", value=str(each["label"]),
                class_=_style(str(each["label"])), aria_describedby=_about(number, each)),
            tag("span", each["description"], class_="small soft", id=_about(number, each))
            if each.get("description") else None,
            class_="option",
        )
        for number, each in enumerate(options)
    ]  # fmt: skip
    yield tag("div", buttons, class_="options")


def _about(number: int, option: Mapping[str, Any]) -> str | None:
    return f"option-{number}" if option.get("description") else None


def _style(label: str) -> str | None:
    return {"approve": "yes", "accept": "yes", "reject": "no", "stop": "no"}.get(label.casefold())


def _questions(page: RequestPage) -> Iterator[Content]:
    for number, question in enumerate(page.request["questions"]):
        many = bool(question.get("multi_select"))
        options = [
            tag(
                "label",
                tag("input", type="checkbox" if many else "radio", name=f"question-{number}",
                    value=each["label"], required=not many),
                tag("span", each["label"],
                    tag("span", f" {each['description']}", class_="small soft")
                    if each.get("description") else None),
                class_="choice",
            )
            for each in question["options"]
        ]  # fmt: skip
        how = tag("span", " choose one or more", class_="small soft") if many else None
        legend = tag("legend", tag("b", question["header"]), ": ", question["text"], how)
        yield tag("fieldset", legend, options)
    yield _comment(page.draft, "Comment", "optional, unless an option asks for it")
    yield _send("Send answers")


def _answer(page: RequestPage, label: str, rows: int) -> Iterator[Content]:
    schema = page.request.get("schema")
    hint = "JSON for the schema below" if schema else ""
    before = page.draft.value if page.draft is not None else ""
    yield _field("value", label, before, rows, hint, required=True)
    yield _send("Send")
    if schema:
        summary = tag("summary", "The schema")
        yield tag("details", summary, tag("pre", json_text(schema, indent=2)))


def _send(words: str) -> Markup:
    return tag("div", tag("button", words, class_="yes"), class_="actions")


def _comment(draft: Draft | None, label: str, hint: str) -> Markup:
    return _field("text", label, draft.text if draft is not None else "", 4, hint)


def _field(
    name: str, label: str, text: str, rows: int, hint: str = "", *, required: bool = False
) -> Markup:
    words = [tag("span", label), tag("span", f" {hint}", class_="small soft") if hint else None]
    # A browser drops the first line break of a text area, so there is always one more.
    area = tag("textarea", "\n", text, name=name, id=f"field-{name}", rows=rows, required=required,
               class_="mono" if name == "content" else None)  # fmt: skip
    return tag("div", tag("label", words, for_=f"field-{name}"), area, class_="field")
