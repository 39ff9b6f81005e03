"""Asks the human behind a client for a decision, without ever taking one from the client.

A client answers for its user, and some answer by themselves. So what comes back from a dialog only
tells whether the user has seen the request. The decision is made on the page or on the command
line, where the user is known; nothing that a client or a model sends can replace it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from signoff.app.answering import title_of
from signoff.app.history import form_of
from signoff.app.next_commands import inbox_command
from signoff.app.project import Project
from signoff.core.digest import SHORT
from signoff.core.requests import ItemState
from signoff.mcp.bounds import line
from signoff.runtime.store_port import InboxItem

KEY = "sign_off"
"""The name of our question among those that a stateless client answers."""
LONGEST_SUMMARY = 600
SEEN = {"type": "object", "properties": {}}
"""The form has no field: there is nothing in it that a client could fill in for its user."""

_MESSAGES = {
    "accept": "The user has seen the request. The decision is made outside; call wait for it.",
    "decline": "Declined, by the user or by the client. Do not ask again; pass on where to decide.",
    "cancel": "The dialog was closed without an answer. Pass on where to decide, then call wait.",
}


@dataclass(frozen=True)
class SignOffRequest:
    """What a human is asked to decide, and where."""

    run: str
    number: int
    is_open: bool
    summary: str
    """What the dialog shows: the question, what was asked for, and its digest."""
    state: str
    link: str
    """The page of the request; empty if no page is served."""

    @property
    def identity(self) -> str:
        """Names the dialog for clients with a session."""
        return f"signoff-{self.run}-{self.number}"

    @property
    def command(self) -> str:
        """Shows it on the command line, with how to decide it; decides nothing itself.

        The commands that decide are not given to an agent, which might run them.
        """
        return inbox_command(self.number)

    @property
    def how(self) -> str:
        """What the user does to decide, in words."""
        command = f"run `{self.command}` in a terminal"
        return f"open {self.link} or {command}" if self.link else command

    def params(self, *, opens_links: bool) -> ElicitRequestURLParams | ElicitRequestFormParams:
        """Returns the dialog for a client: a link to the page, or a notice."""
        if opens_links and self.link:
            return ElicitRequestURLParams(
                message=self.summary, url=self.link, elicitation_id=self.identity
            )
        where = f"Decide at {self.link}" if self.link else f"To decide, run: {self.command}"
        return ElicitRequestFormParams(
            message=f"{self.summary}\n{where}", requested_schema=dict(SEEN)
        )

    def reply(self, message: str) -> dict[str, Any]:
        """Returns the answer of the tool."""
        found: dict[str, Any] = {"run": self.run, "done": not self.is_open, "message": message}
        found |= {"link": self.link} if self.link else {}
        return found | ({"command": self.command} if self.is_open else {})


def sign_off_request(project: Project, number: int, page: str) -> SignOffRequest:
    """Returns a request of the inbox as a human is shown it."""
    item = project.store.item(number)
    return SignOffRequest(
        run=item.run,
        number=item.id,
        is_open=item.state is ItemState.OPEN,
        summary=_summary(project, item),
        state=item.state.value,
        link=f"{page.rstrip('/')}/requests/{item.id}" if page else "",
    )


def _summary(project: Project, item: InboxItem) -> str:
    title = title_of(form_of(project, item))
    text = line(f"{title} {item.prompt}".strip(), LONGEST_SUMMARY)
    return f"signoff: run {item.run} needs your decision.\n{text}\ndigest {item.digest[:SHORT]}"


async def ask_human(
    ctx: Context[Any, Any], request: SignOffRequest, patience: float
) -> dict[str, Any] | InputRequiredResult:
    """Shows a request to the human, in the best way that their client has."""
    if not request.is_open:
        return request.reply(f"Request #{request.number} is {request.state}; nothing to sign off.")
    capabilities = ctx.client_capabilities
    dialogs = capabilities.elicitation if capabilities is not None else None
    if dialogs is None:
        return request.reply(f"Ask the user to {request.how}, and decide there. Then call wait.")
    params = request.params(opens_links=dialogs.url is not None)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return _stateless(ctx, request, params)
    action = await _asked(ctx, params, patience)
    return request.reply(_MESSAGES[action])


def _stateless(
    ctx: Context[Any, Any],
    request: SignOffRequest,
    params: ElicitRequestURLParams | ElicitRequestFormParams,
) -> dict[str, Any] | InputRequiredResult:
    """Asks through the result, as clients without a session need it; they call again with it."""
    answers = ctx.input_responses
    if answers is None:
        return InputRequiredResult(input_requests={KEY: ElicitRequest(params=params)})
    answer = answers.get(KEY)
    action = answer.action if isinstance(answer, ElicitResult) else "cancel"
    return request.reply(_MESSAGES[action])


async def _asked(
    ctx: Context[Any, Any],
    params: ElicitRequestURLParams | ElicitRequestFormParams,
    patience: float,
) -> str:
    """Returns what became of a dialog; a client that fails or never answers has closed it."""
    session, result = ctx.session, None
    with anyio.move_on_after(patience):
        try:
            result = await session.send_request(
                ElicitRequest(params=params),
                ElicitResult,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except (MCPError, ValueError):
            # The client offers dialogs and refuses this one, as some do without a terminal.
            return "cancel"
    return result.action if result is not None else "cancel"
