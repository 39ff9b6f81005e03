"""Which requests are about an approval, what they are called, and when they need a signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.presence import APPROVES, PRESENCE, needs_presence, refuse_approval_by_default
from signoff.core.requests import AnswerForm, RequestKind

SIGN_OFF = "sign_off"
"""The id of the question at a sign-off, and the constraint of findings that are reported there."""


def is_approval(form: Mapping[str, Any]) -> bool:
    """Tells whether an answer to a request can approve something."""
    return RequestKind(form["kind"]).answer_form is AnswerForm.DECISION or APPROVES in form


def request_word(form: Mapping[str, Any]) -> str:
    """Returns what a request is to a human, such as `sign-off`; its kind is for programs."""
    if form.get("question_id") == SIGN_OFF:
        return "sign-off"
    return RequestKind(form["kind"]).word


def approves(form: Mapping[str, Any], value: Any) -> bool:
    """Tells whether an answer approves something, whether or not that had to be signed."""
    return needs_presence({**form, PRESENCE: form.get(PRESENCE) or is_approval(form)}, value)


def require_presence(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a form with presence required, if it is about an approval."""
    if not is_approval(form):
        return dict(form)
    required = {**form, PRESENCE: True}
    if "deadline_seconds" in form:
        refuse_approval_by_default(required)
    return required
