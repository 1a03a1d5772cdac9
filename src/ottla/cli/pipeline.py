"""`ottla pipeline run | validate | plan | list | status | schema`."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import json_option, senseless
from ottla.cli.tables import show
from ottla.cli.verbs import Verbs
from ottla.config import unknown

if TYPE_CHECKING:
    from ottla.pipelines.file.reading import Read
    from ottla.pipelines.manager.build import Built
    from ottla.pipelines.manager.home import Home


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
    """Run and check pipelines that are written in files."""


where_option = click.argument("where", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
master_option = click.option("--master", metavar="URL", help="Where Spark runs.  [default: the file's, or local[*]]")
names_option = click.option(
    "--only", "names", metavar="NAME", multiple=True, help="This pipeline alone; may be given several times."
)


@pipeline.command()
@where_option
@click.option("--once", is_flag=True, help="Only what is there now.")
@names_option
@master_option
def run(where: Path, once: bool, names: tuple[str, ...], master: str | None) -> None:
    """Run the pipelines of a file, or of all files of a folder, until Ctrl-C."""
    from ottla.cli.pipeline_view import view_of
    from ottla.pipelines.file.reading import read_pipelines
    from ottla.pipelines.manager.manager import Manager
    from ottla.pipelines.manager.session import session_for

    with told_line_by_line():
        reads = chosen(read_pipelines(where), names)
        spark = session_for(reads, master)
        with view_of([read.name for read in reads]) as tell, ended_by_signals() as on_signal:
            manager = Manager(reads, spark, once=once, tell=tell)
            on_signal(manager.stop)
            well = manager.run()
        spark.stop()
    click.get_current_context().exit(0 if well else 1)


@pipeline.command()
@where_option
@names_option
@master_option
def plan(where: Path, names: tuple[str, ...], master: str | None) -> None:
    """Show what would run: the columns after each step, and where state and checkpoints lie."""
    from ottla.pipelines.file.reading import checkpoints_of, read_pipelines
    from ottla.pipelines.manager.home import Home
    from ottla.pipelines.manager.manager import build_all
    from ottla.pipelines.manager.session import session_for

    with told_line_by_line():
        reads = chosen(read_pipelines(where), names)
        spark = session_for(reads, master)
        for built in build_all(reads, spark):
            home = Home(checkpoints_of(built.read), built.read.name)
            click.echo("\n".join(planned(built, home)) + "\n")
        spark.stop()


@pipeline.command("list")
@where_option
@json_option
def list_pipelines(where: Path, in_json: bool) -> None:
    """Print the pipelines of a file or a folder with their sources and sinks."""
    from ottla.pipelines.file.reading import read_pipelines

    with told_line_by_line():
        reads = read_pipelines(where)
    rows = [(r.name, r.model.source.describe(), r.model.sink.describe(), r.document.file) for r in reads]
    show(("NAME", "SOURCE", "SINK", "FILE"), rows, in_json=in_json)


@pipeline.command()
@where_option
@json_option
def status(where: Path, in_json: bool) -> None:
    """Print how the pipelines of a file or a folder are, or were when last heard of."""
    from ottla.pipelines.file.reading import checkpoints_of, read_pipelines
    from ottla.pipelines.manager.home import Home

    with told_line_by_line():
        reads = read_pipelines(where)
    homes = [Home(checkpoints_of(read), read.name) for read in reads]
    show(("NAME", "STATE", "BATCH", "ROWS-IN", "LAG", "REASON"), [status_row(home) for home in homes], in_json=in_json)


def planned(built: Built, home: Home) -> Iterator[str]:
    """What a pipeline would do."""
    yield built.read.name
    for name, schema in built.steps:
        yield f"  {name}"
        yield "    " + ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
    sink = built.read.model.sink
    yield f"  to {sink.describe()}, {sink.promise()}"
    begun = home.refusal(built.fingerprint) or ("begins anew" if home.is_new else "goes on where it was")
    yield f"  checkpoint {home.checkpoint}: {begun}"


def status_row(home: Home) -> list[Any]:
    """One pipeline; what was running and is run by nobody now was killed."""
    known = home.status() or {}
    state = known.get("state", "new")
    if state in ("starting", "running", "waiting") and not home.is_taken():
        state = "killed"
    return [home.name, state, *(known.get(name) for name in ("batch", "rows_in", "lag", "reason"))]


def chosen(reads: list[Read], names: tuple[str, ...]) -> list[Read]:
    """Those that are named, or all."""
    known = [read.name for read in reads]
    for name in names:
        if name not in known:
            raise senseless(f"{unknown('pipeline', name, known)} There are {', '.join(known)}.")
    return [read for read in reads if not names or read.name in names]


@contextmanager
def ended_by_signals() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Have Ctrl-C and SIGTERM end what is given, in order; until there is something, they end the command."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def set_up(stop: Callable[[], None]) -> None:
        for number in before:
            signal.signal(number, lambda *_: stop())

    try:
        yield set_up
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pipeline.command()
@where_option
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
