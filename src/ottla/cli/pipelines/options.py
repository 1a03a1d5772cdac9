"""What the verbs of `ottla pipeline` share: their options, the pipelines that are meant, and mistakes line by line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.options import senseless
from ottla.cli.output import echo
from ottla.config import unknown_among

if TYPE_CHECKING:
    from ottla.pipelines.file.reading import Read

where_option = click.argument("where", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
here_option = click.option(
    "--file",
    "where",
    metavar="FILE|FOLDER",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Where the pipelines are written.  [default: the files of this folder]",
)
master_option = click.option("--master", metavar="URL", help="Where Spark runs.  [default: the file's, or local[*]]")
names_option = click.option(
    "--only", "names", metavar="NAME", multiple=True, help="This pipeline alone; may be given several times."
)


@contextmanager
def told_line_by_line() -> Iterator[None]:
    """Several mistakes are several lines, as those of compilers are, so that editors find the places."""
    from ottla.pipelines.place import PipelineFileError

    try:
        yield
    except PipelineFileError as error:
        for mistake in error.mistakes:
            echo(str(mistake), err=True)
        click.get_current_context().exit(1)


def chosen(reads: list[Read], names: tuple[str, ...]) -> list[Read]:
    """Those that are named, or all."""
    known = [read.name for read in reads]
    for name in names:
        if name not in known:
            raise senseless(unknown_among("pipeline", name, known, f"{', '.join(known)}."))
    return [read for read in reads if not names or read.name in names]


def one_of(reads: list[Read], name: str) -> Read:
    """The pipeline of this name."""
    return chosen(reads, (name,))[0]
