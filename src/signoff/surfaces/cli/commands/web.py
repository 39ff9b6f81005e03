"""`signoff web` and `signoff passkeys`."""

from __future__ import annotations

import webbrowser
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import click

from signoff.app.people.answering import current_user, refuse_worker
from signoff.core.digest import SHORT
from signoff.core.errors import ConfigError, UsageError
from signoff.runtime.extras import install_command
from signoff.surfaces.cli import exits
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, moment

if TYPE_CHECKING:
    from signoff.app.settings.project import Project
    from signoff.surfaces.web.access import Access


PORT = 8717
LOCAL = "127.0.0.1"
SCOPES = ("read", "operate", "decide")


@cli.command()
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True,
              help="The port; 0 takes any free one.")  # fmt: skip
@click.option("--open", "open_browser", is_flag=True, help="Open the page in your browser.")
@click.option("--link", "link_only", is_flag=True,
              help="Print another login link for the running server, and exit.")  # fmt: skip
@click.option("--host", default=LOCAL, show_default=True, metavar="ADDRESS",
              help="The address to listen on. Any but this machine's needs a token and "
                   "--allow-host.")  # fmt: skip
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME",
              help="A host name under which the page may be reached. Repeatable.")  # fmt: skip
@click.option("--token", "create", is_flag=True, help="Print a new token for programs, and exit.")
@click.option("--scope", type=click.Choice(SCOPES), default="operate", show_default=True,
              help="What the token allows: look; also start, cancel and resume runs; "
                   "also answer requests.")  # fmt: skip
@click.option("--name", default="", metavar="NAME",
              help="The token's name; it is recorded as the author of answers.")  # fmt: skip
@click.option("--agent", is_flag=True,
              help="The token is for an AI agent: it can never decide.")  # fmt: skip
@click.option("--tokens", "list_all", is_flag=True, help="List the tokens, and exit.")
@click.option("--revoke", metavar="NAME", help="Make a token invalid, and exit.")
def command(  # click passes each option
    port: int,
    open_browser: bool,
    link_only: bool,
    host: str,
    hosts: tuple[str, ...],
    create: bool,
    scope: str,
    name: str,
    agent: bool,
    list_all: bool,
    revoke: str | None,
    out: Output,
) -> None:
    """Serve the web page and the REST interface of this project.

    The page shows what needs you, every run with its findings and changes, and lets you decide
    there. It answers only on this machine and only to you: log in with the link that is printed,
    which works once.

    Examples:
      signoff web --open
      signoff web --link                              log in with another browser
      signoff web --token --scope read --name backup  a token for a script
      signoff web --revoke backup
    """
    serves = not (create or list_all or link_only or revoke is not None)
    with cli.open_here(drives=serves) as project, closing(_open_access(project)) as access:
        if revoke is not None:
            access.revoke(revoke)
            out.note(f"Token {revoke!r} is no longer valid.")
        elif create:
            _create_token(access, name or current_user(), scope, agent, out)
        elif list_all:
            _list_tokens(access, out)
        elif link_only:
            _show_link(_address(access, "start it without --link"), access, open_browser, out)
        else:
            _serve(project, access, (host, port), hosts, open_browser, out)


def _open_access(project: Project) -> Access:
    refuse_worker(project.worker_token, "open the web page")
    try:
        import fastapi  # noqa: F401  # checked here, so that a missing extra is one clear message
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"the web page needs the extra 'web'; install it: {install_command('web')}"
        ) from error
    from signoff.surfaces.web.access import Access

    return Access.of(project.home)


def _serve(
    project: Project,
    access: Access,
    address: tuple[str, int],
    hosts: tuple[str, ...],
    open_browser: bool,
    out: Output,
) -> None:
    from signoff.surfaces.web.guard import LOOPBACK
    from signoff.surfaces.web.server import create_app, listen, listen_as_localhost, serve

    host = address[0]
    if host not in LOOPBACK and not (hosts and access.tokens()):
        raise UsageError(
            f"{host} can be reached by other machines: name the hosts they use (--allow-host NAME) "
            "and create a token first (--token), or leave out --host"
        )
    app = create_app(project, access, hosts=hosts)
    try:
        server_socket = listen(*address)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}, port {address[1]}: {error.strerror}; use another --port, "
            "or --link if the page is already being served"
        ) from error
    sockets, port = [server_socket], server_socket.getsockname()[1]
    shown = hosts[0] if host not in LOOPBACK else host
    if host == LOCAL:
        try:
            # Passkeys belong to a host name, so the page is shown under one.
            sockets += listen_as_localhost(port)
            shown = "localhost"
        except OSError:
            out.note(f"Passkeys cannot be used: another program has port {port} on [::1].")
    base = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"

    def ready() -> None:
        access.keep_address(base)
        _show_link(base, access, open_browser, out)
        out.note("Press Ctrl-C to stop. Runs are not affected.")

    # Ctrl-C is how a server is stopped, so it is no failure.
    with suppress(KeyboardInterrupt):
        serve(app, sockets, ready)


def _address(access: Access, remedy: str) -> str:
    address = access.address()
    if not address:
        raise UsageError(f"the page is not being served; {remedy}")
    return address


def _show_link(base: str, access: Access, open_browser: bool, out: Output) -> None:
    link = f"{base}/login?key={quote(access.new_link(current_user()))}"
    if out.as_json:
        out.json_line({"url": base, "link": link})
    else:
        out.line(f"Log in: {link}")
        out.note("The link works once, within an hour.")
    if open_browser:
        webbrowser.open(link)


def _create_token(access: Access, name: str, scope_name: str, agent: bool, out: Output) -> None:
    from signoff.surfaces.web.access import AccessScope

    scope = AccessScope[scope_name.upper()]
    token = access.new_token(name, scope, agent=agent)
    out.show({"name": name, "scope": scope.word, "agent": agent, "token": token}, token)
    out.note(f"Token {name!r} ({scope.word}). It is shown only now.")


def _list_tokens(access: Access, out: Output) -> None:
    found = access.tokens()
    documents = [each._asdict() | {"scope": each.scope.word} for each in found]
    rows = [
        (each.name, each.scope.word, "agent" if each.agent else "program", moment(each.created_at))
        for each in found
    ]
    out.listing(documents, ("NAME", "SCOPE", "FOR", "CREATED"), rows, "no tokens")


@click.group(cls=cli.Group)
def passkeys_command() -> None:
    """Register passkeys, and check what they signed.

    Approvals that require presence are signed with a passkey on the web page. The public keys are
    in .signoff/passkeys.json, which is meant to be committed and reviewed.

    Examples:
      signoff passkeys add laptop      print the link that registers a passkey
      signoff passkeys list
      signoff passkeys verify RUN      check the signatures of a run's approvals
      signoff passkeys remove laptop   after the device was lost
    """


@cli.command(group=passkeys_command)
@click.argument("name")
def add(name: str, out: Output) -> None:
    """Print a link that registers a passkey.

    The link works once. The page must be running (signoff web). If there is a passkey already, it
    has to confirm the new one.
    """
    with cli.open_here() as project:
        refuse_worker(project.worker_token, "register passkeys")
        # Imported here because the web server's part needs its database.
        from signoff.app.people.passkeys import check_name
        from signoff.surfaces.web.access import Access

        check_name(project.home.passkeys, name)
        with closing(Access.of(project.home)) as access:
            base = _page(_address(access, "start it first: signoff web"))
            key = quote(access.new_registration(name))
            login = quote(access.new_link(current_user()))
    link = f"{base}/login?key={login}&to={quote(f'/passkeys/new?key={key}', safe='')}"
    out.show({"name": name, "link": link}, f"Register passkey {name!r}: {link}")
    out.note("The link works once, within 15 minutes.")


@cli.command("list", group=passkeys_command)
def list_(out: Output) -> None:
    """List the passkeys of this project."""
    with cli.open_here() as project:
        from signoff.app.people.passkeys import HEADINGS, read_passkeys

        found = read_passkeys(project.home.passkeys)
    documents = [asdict(each) | {"fingerprint": each.fingerprint} for each in found]
    none = "no passkeys; register one: signoff passkeys add NAME"
    headings = [each.upper() for each in HEADINGS]
    out.listing(documents, headings, [each.describe() for each in found], none)


@cli.command(group=passkeys_command)
@click.argument("name")
def remove(name: str, out: Output) -> None:
    """Remove a passkey.

    It can sign nothing more. What it has signed stays valid.
    """
    with cli.open_here() as project:
        refuse_worker(project.worker_token, "remove passkeys")
        from signoff.app.people.passkeys import remove_passkey

        removed = remove_passkey(project.home.passkeys, name, project.clock.now())
    document = asdict(removed) | {"fingerprint": removed.fingerprint}
    out.show(document, f"Passkey {name!r} ({removed.fingerprint[:SHORT]}) can no longer sign.")


@cli.command(group=passkeys_command)
@click.argument("run", required=False)
@click.option("--keys", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Use this file of passkeys, such as one from a reviewed commit.")  # fmt: skip
def verify(run: str | None, keys: Path | None, out: Output) -> None:
    """Check the signatures of a run's approvals.

    Without RUN, those of the latest run. It needs no server and no network. The exit code is 1 if
    an approval that needs a signature has no valid one, or if what is stored about an approval was
    changed.
    """
    with cli.open_here() as project:
        from signoff.app.people.passkeys import check_approvals

        checks = check_approvals(project, run, keys)
    rows = [
        (
            f"#{each.request}",
            each.step,
            "approved" if each.value is True else str(each.value),
            each.by,
            each.passkey or "-",
            each.fingerprint[:SHORT] or "-",
            each.problem or ("valid" if each.passkey else "not signed, not required"),
        )
        for each in checks
    ]
    header = ("REQUEST", "STEP", "ANSWER", "BY", "PASSKEY", "FINGERPRINT", "SIGNATURE")
    out.listing([*map(asdict, checks)], header, rows, "no approvals")
    if any(each.problem for each in checks):
        raise click.exceptions.Exit(exits.ERROR)


def _page(address: str) -> str:
    """Returns the address of the page under a host name: passkeys belong to names, not numbers."""
    parts = urlsplit(address)
    local = parts.hostname in ("127.0.0.1", "::1")
    return f"{parts.scheme}://localhost:{parts.port}" if local else address
