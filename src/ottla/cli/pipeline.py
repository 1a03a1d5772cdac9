"""`ottla pipeline validate | schema`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ottla.cli.verbs import Verbs


@contextmanager
def told_line_by_line() -> Iterator[None]:
    """Several mistakes are several lines, as those of compilers are, so that editors find the places."""
    from ottla.pipelines.place import PipelineFileError

    try:
        yield
    except PipelineFileError as error:
        for mistake in error.mistakes:
            click.echo(str(mistake), err=True)
        click.get_current_context().exit(1)


@click.group(cls=Verbs)
def pipeline() -> None:
    """Check pipelines that are written in files."""


@pipeline.command()
@click.argument("where", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
def validate(where: Path) -> None:
    """Check a pipeline file, or all of a folder, and say what is wrong with them and where."""
    from ottla.pipelines.file.reading import read_pipelines

    with told_line_by_line():
        found = read_pipelines(where)
    names = ", ".join(read.name for read in found)
    click.echo(f"{where}: {len(found)} pipeline{'s' * (len(found) != 1)}, nothing wrong: {names}")


@pipeline.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files, for editors."""
    from ottla.pipelines.file.schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
