"""Which requests are about an approval, and how the settings make it need a signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.presence import APPROVES, PRESENCE, needs_presence, refuse_approval_by_default
from signoff.core.requests import AnswerForm, RequestKind


def is_approval(form: Mapping[str, Any]) -> bool:
    """Tells whether an answer to a request can approve something."""
    return RequestKind(form["kind"]).answer_form is AnswerForm.DECISION or APPROVES in form


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
