"""`signoff init`."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import indent

import click

from signoff.app.settings.home import InitResult
from signoff.app.settings.presets import copy_templates, init_project, presets
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, near


@cli.command()
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--preset",
    type=click.Choice(list(presets())),
    help="Also write a working start: a review flow, a contract, a profile or a skill.",
)
@click.option("--list", "listing", is_flag=True, help="List the presets and exit.")
@click.option(
    "--templates",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Only copy the prompt templates of review flows to this folder, as a start for your own.",
)
def command(
    folder: Path | None, preset: str | None, listing: bool, templates: Path | None, out: Output
) -> None:
    """Create .signoff/ with settings, constraints/, flows/ and schemas/.

    Existing files are left alone, so it is safe to repeat. Commit the folder; its
    .gitignore excludes the database and the runs.

    Examples:
      signoff init                 in the root of your project
      signoff init path/to/project
      signoff init --preset docs   with a review flow to start from
      signoff init --preset skill  with a procedure for a coding agent
      signoff init --list          list the presets
      signoff init --templates prompts    then add `prompts: prompts` to a flow
    """
    if listing:
        listed = [preset for preset, _ in presets().values()]
        documents = [{"name": each.name, "about": each.help} for each in listed]
        out.listing(
            documents, ("PRESET", "WHAT IT IS FOR"), [(each.name, each.help) for each in listed]
        )
        return
    if templates is not None:
        _copy_templates(templates, out)
        return
    result = init_project((folder or Path()).absolute(), os.environ, preset)
    run = " ".join(result.run)
    pull = " --pull" if result.external else ""
    commands = [f"signoff validate {run}", f"signoff run {run}{pull}"] if run else []
    if out.as_json:
        paths = {"created": result.created, "changed": result.changed, "kept": result.existing}
        paths_json = {name: [str(each) for each in value] for name, value in paths.items()}
        to_add = {"add_to_settings": result.to_add} if result.to_add else {}
        head = {"home": str(result.home.path), "preset": preset}
        out.json({**head, **paths_json, **to_add, "next": commands})
        return
    _print_files(result, out)
    root = result.home.root
    there = [f"cd {near(root)}"] if run and root != Path.cwd() else []
    for each in (*there, *commands):
        out.note(f"next: {each}")
    if result.created and not preset:
        first, *others = presets()
        more = ", ".join(others)
        out.note(f"next: signoff init --preset {first}  (or {more}), or signoff run flow.py")


def _print_files(result: InitResult, out: Output) -> None:
    for path in result.created:
        out.line(f"created {near(path)}{'/' if path.is_dir() else ''}")
    for path in result.existing:
        out.line(f"kept {near(path)} unchanged")
    for path in result.changed:
        out.line(f"added the preset's settings to {near(path)}")
    if not (result.created or result.existing or result.changed or result.to_add):
        out.line(f"{result.home.path} is already complete")
    if result.to_add:
        out.note(f"next: add this to {near(result.home.config)}:\n{indent(result.to_add, '  ')}")


def _copy_templates(folder: Path, out: Output) -> None:
    files = copy_templates(folder)
    out.show({"created": [*map(str, files)]}, *(f"created {file}" for file in files))
    out.note(f"next: delete what you do not change, and add `prompts: {folder}` to the flow")
