"""`ottla pipeline new-connector` and `ottla pipeline clean`: create a source; remove leftovers on servers."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.options import json_option
from ottla.cli.output import echo
from ottla.cli.pipelines.options import choose_pipelines, names_option, report_file_errors, where_option
from ottla.cli.tables import show


@click.command("new-connector")
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="Parent of the new folder.")
def new_connector(name: str, folder: Path) -> None:
    """Create a project with a working source, its entry point and a passing test."""
    from ottla.pipelines.new_connector import new_connector as write

    target = write(name, folder)
    echo(f"{target}: run its test with `python -m pytest {target}`, install it with `pip install -e {target}`")


@click.command()
@where_option
@names_option
@click.option("--drop", is_flag=True, help="Remove them. Unread changes are lost.")
@json_option
def clean(where: Path, names: tuple[str, ...], drop: bool, in_json: bool) -> None:
    """List objects that pipelines left on servers, such as replication slots; with --drop remove them."""
    from ottla.pipelines.file.reading import read_pipelines
    from ottla.pipelines.manager.leftovers import delete_leftovers, find_leftovers

    with report_file_errors():
        reads = choose_pipelines(read_pipelines(where), names)
    found = [(read, what) for read in reads for what in find_leftovers(read)]
    if found and drop:
        for read in reads:
            delete_leftovers(read)
    if in_json:
        show(("PIPELINE", "LEFT-BEHIND", "TAKEN-AWAY"), [(r.name, what, drop) for r, what in found], in_json=True)
        return
    for read, what in found:
        echo(f"{read.name}: {what}")
    if not found:
        echo("there are no leftovers")
    else:
        echo("all of them were removed" if drop else "add --drop to remove them")
