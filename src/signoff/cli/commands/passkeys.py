"""`signoff passkeys`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote, urlsplit

import click

from signoff.app.answering import current_user, refuse_worker
from signoff.cli import exits
from signoff.cli.options import Group, open_here, output_options
from signoff.cli.output import Output
from signoff.core.digest import SHORT
from signoff.errors import UsageError


@click.group(cls=Group)
def command() -> None:
    """Register passkeys, and check what they signed.

    Approvals that require presence are signed with a passkey on the web page. The public keys are
    in .signoff/passkeys.json, which is meant to be committed and reviewed.

    Examples:
      signoff passkeys add laptop      print the link that registers a passkey
      signoff passkeys list
      signoff passkeys verify RUN      check the signatures of a run's approvals
      signoff passkeys remove laptop   after the device was lost
    """


@command.command()
@click.argument("name")
@output_options
def add(name: str, out: Output) -> None:
    """Print a link that registers a passkey.

    The link works once. The page must be running (signoff web). If there is a passkey already, it
    has to confirm the new one.
    """
    with open_here() as project:
        refuse_worker(project, "register passkeys")
        # Imported here because the web server's part needs its database.
        from signoff.passkeys.key_file import check_name
        from signoff.web.access import Access

        check_name(project.home.passkeys, name)
        access = Access.of(project.home)
        try:
            base = _page(access.address())
            key = quote(access.new_registration(name))
            login = quote(access.new_link(current_user()))
        finally:
            access.close()
    link = f"{base}/login?key={login}&to={quote(f'/passkeys/new?key={key}', safe='')}"
    if out.as_json:
        out.json({"name": name, "link": link})
        return
    out.line(f"Register passkey {name!r}: {link}")
    out.note("The link works once, within 15 minutes.")


@command.command("list")
@output_options
def list_(out: Output) -> None:
    """List the passkeys of this project."""
    with open_here() as project:
        from signoff.passkeys.key_file import HEADINGS, read_passkeys

        found = read_passkeys(project.home.passkeys)
    if out.as_json:
        out.json([asdict(each) | {"fingerprint": each.fingerprint} for each in found])
        return
    if not found:
        out.note("No passkeys. Register one: signoff passkeys add NAME")
        return
    out.table([each.upper() for each in HEADINGS], [each.describe() for each in found])


@command.command()
@click.argument("name")
@output_options
def remove(name: str, out: Output) -> None:
    """Remove a passkey.

    It can sign nothing more. What it has signed stays valid.
    """
    with open_here() as project:
        refuse_worker(project, "remove passkeys")
        from signoff.passkeys.key_file import remove_passkey

        removed = remove_passkey(project.home.passkeys, name, project.clock.now())
    if out.as_json:
        out.json(asdict(removed) | {"fingerprint": removed.fingerprint})
    else:
        out.note(f"Passkey {name!r} ({removed.fingerprint[:SHORT]}) can no longer sign.")


@command.command()
@click.argument("run", required=False)
@click.option("--keys", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Use this file of passkeys, such as one from a reviewed commit.")  # fmt: skip
@output_options
def verify(run: str | None, keys: Path | None, out: Output) -> None:
    """Check the signatures of a run's approvals.

    Without RUN, those of the latest run. It needs no server and no network. The exit code is 1 if
    an approval that needs a signature has no valid one, or if what is stored about an approval was
    changed.
    """
    with open_here() as project:
        from signoff.app.signatures import check_approvals

        checks = check_approvals(project, run, keys)
    if out.as_json:
        out.json([asdict(each) for each in checks])
    elif not checks:
        out.note("No approvals.")
    else:
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
        out.table(header, rows)
    if any(each.problem for each in checks):
        raise click.exceptions.Exit(exits.ERROR)


def _page(address: str) -> str:
    """Returns the address of the page under a host name: passkeys belong to names, not numbers."""
    if not address:
        raise UsageError("the page is not being served; start it first: signoff web")
    parts = urlsplit(address)
    local = parts.hostname in ("127.0.0.1", "::1")
    return f"{parts.scheme}://localhost:{parts.port}" if local else address
