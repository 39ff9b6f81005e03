"""What a route asks of its caller: a parameter of one of these types.

A session has every scope; a token has the one it was made with.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from signoff.errors import NotAllowed
from signoff.web.access import AccessScope, Caller
from signoff.web.guard import CALLER, missing_scope


def _reader(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


def _operator(request: Request) -> Caller:
    return _need(request, AccessScope.OPERATE)


def _decider(request: Request) -> Caller:
    return _need(request, AccessScope.DECIDE)


def _need(request: Request, scope: AccessScope) -> Caller:
    caller = _reader(request)
    refusal = missing_scope(caller, scope)
    if refusal is not None:
        raise NotAllowed(refusal.message, remedy=refusal.remedies)
    return caller


Reader = Annotated[Caller, Depends(_reader)]
"""Anyone who is logged in or has a token."""
Operator = Annotated[Caller, Depends(_operator)]
"""May start, cancel and resume runs."""
Decider = Annotated[Caller, Depends(_decider)]
"""May answer requests; never an agent."""
