"""Shared options of `ottla pipeline`, the selection of pipelines, and errors of pipeline files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.options import usage_error
from ottla.cli.output import echo
from ottla.config import unknown_among

if TYPE_CHECKING:
    from ottla.pipelines.file.reading import PipelineDefinition

where_option = click.argument("where", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
here_option = click.option(
    "--file",
    "where",
    metavar="FILE|FOLDER",
    type=click.Path(path_type=Path),
    default=Path(),
    help="File or folder of the pipelines.  [default: this folder]",
)
master_option = click.option("--master", metavar="URL", help="The Spark master.  [default: the file's, or local[*]]")
names_option = click.option(
    "--only", "names", metavar="NAME", multiple=True, help="Only this pipeline; may be repeated."
)


@contextmanager
def report_file_errors() -> Iterator[None]:
    """Print each error of a pipeline file in its own line with its position, as compilers do, so that editors find it."""
    from ottla.pipelines.place import PipelineFileError

    try:
        yield
    except PipelineFileError as error:
        for mistake in error.mistakes:
            echo(str(mistake), err=True)
        click.get_current_context().exit(1)


def choose_pipelines(reads: list[PipelineDefinition], names: tuple[str, ...]) -> list[PipelineDefinition]:
    """Return the named pipelines, or all if no name is given."""
    known = [read.name for read in reads]
    for name in names:
        if name not in known:
            raise usage_error(unknown_among("pipeline", name, known, f"{', '.join(known)}."))
    return [read for read in reads if not names or read.name in names]


def one_of(reads: list[PipelineDefinition], name: str) -> PipelineDefinition:
    """Return the pipeline with this name."""
    return choose_pipelines(reads, (name,))[0]
