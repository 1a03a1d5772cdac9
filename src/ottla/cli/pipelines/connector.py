"""`ottla pipeline new-connector` and `ottla pipeline clean`: what is beside the running of pipelines."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.options import json_option
from ottla.cli.output import echo
from ottla.cli.pipelines.options import chosen, names_option, told_line_by_line, where_option
from ottla.cli.tables import show


@click.command("new-connector")
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="Where its folder is made.")
def new_connector(name: str, folder: Path) -> None:
    """Write a source of your own that works, with its entry point and a test that passes."""
    from ottla.pipelines.new_connector import new_connector as write

    target = write(name, folder)
    echo(
        f"{target}: see that its test passes with `python -m pytest {target}`, install it with `pip install -e {target}`"
    )


@click.command()
@where_option
@names_option
@click.option("--drop", is_flag=True, help="Take it away. What was not read yet is lost.")
@json_option
def clean(where: Path, names: tuple[str, ...], drop: bool, in_json: bool) -> None:
    """Tell what pipelines have left behind on servers, such as replication slots, and with --drop take it away."""
    from ottla.pipelines.file.reading import read_pipelines
    from ottla.pipelines.manager.left_behind import clean_up, left_behind

    with told_line_by_line():
        reads = chosen(read_pipelines(where), names)
    found = [(read, what) for read in reads for what in left_behind(read)]
    if found and drop:
        for read in reads:
            clean_up(read)
    if in_json:
        show(("PIPELINE", "LEFT-BEHIND", "TAKEN-AWAY"), [(r.name, what, drop) for r, what in found], in_json=True)
        return
    for read, what in found:
        echo(f"{read.name}: {what}")
    if not found:
        echo("nothing is left behind")
    else:
        echo("all of it was taken away" if drop else "--drop takes it away")
