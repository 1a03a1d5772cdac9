"""`ottla pipeline run | validate | plan | list | schema`; requests to a running manager are in `control`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import json_lines_option, json_option, place_of, read_as_usage
from ottla.cli.output import echo, to_json
from ottla.cli.pipelines import control as pipeline_control
from ottla.cli.pipelines.connector import clean, new_connector
from ottla.cli.pipelines.options import (
    choose_pipelines,
    master_option,
    names_option,
    one_of,
    report_file_errors,
    where_option,
)
from ottla.cli.pipelines.signals import ended_by_signals
from ottla.cli.tables import show

if TYPE_CHECKING:
    from ottla.openlineage.lineage import Lineage
    from ottla.pipelines.file.reading import PipelineDefinition
    from ottla.pipelines.manager.build import Built
    from ottla.pipelines.manager.facts import Facts
    from ottla.pipelines.manager.runner import PipelineEvent
    from ottla.pipelines.manager.state_directory import StateDirectory
    from ottla.pipelines.place import Mistake

PLAN = ("NAME", "STEPS", "SINK", "PROMISE", "CHECKPOINT", "BEGINS", "SCHEMA-CHANGES")
MISTAKES = ("FILE", "LINE", "COLUMN", "MISTAKE")


@click.group(cls=CommandGroup)
def pipeline() -> None:
    """Run and check pipelines that are defined in files."""


@pipeline.command()
@where_option
@click.option("--once", is_flag=True, help="Process the present data, then end.")
@names_option
@master_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    help="Address of Kafka Connect's REST API and of served tables.  [default: a free port of 127.0.0.1]",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve /metrics for Prometheus over HTTP; port 0 selects a free one; needs pip install 'ottla[metrics]'.",
)
@click.option(
    "--openlineage",
    is_flag=True,
    help="Emit the start and end of each run with its datasets to OpenLineage, as its own settings say.",
)
@json_lines_option
def run(
    where: Path,
    once: bool,
    names: tuple[str, ...],
    master: str | None,
    listen: str,
    metrics: str | None,
    openlineage: bool,
    in_json: bool,
) -> None:
    """Run the pipelines of a file, or of all files of a folder, until Ctrl-C."""
    from ottla.cli.pipelines.view import view_of
    from ottla.pipelines.file.reading import read_pipelines
    from ottla.pipelines.manager.control import serve_control
    from ottla.pipelines.manager.manager import Manager
    from ottla.pipelines.manager.preparation import prepare_in_block
    from ottla.pipelines.manager.session import end_session, session_for
    from ottla.spark.driver.class_archive import start_archive_build
    from ottla.spark.driver.interruptible import run_interruptibly

    with report_file_errors(), metrics_at(metrics) as show_metrics:
        lineage = lineage_of(openlineage)
        reads = choose_pipelines(read_pipelines(where), names)
        with ended_by_signals() as signals, prepare_in_block(reads) as homes:
            spark = run_interruptibly(lambda: session_for(reads, master))
            start_archive_build()
            with view_of([read.name for read in reads], in_json=in_json) as on_event:
                manager = run_interruptibly(
                    lambda: Manager(
                        reads,
                        spark,
                        homes,
                        once=once,
                        on_event=on_event if lineage is None else both(on_event, lineage),
                        read_again=lambda name: one_of(read_pipelines(where), name),
                    )
                )
                show_metrics(manager.facts)
                if lineage is not None:
                    lineage.watch(manager.runners)
                signals.stop_with(manager.stop)
                with serve_control(manager, listen):
                    well = manager.run()
            end_session(spark)
    click.get_current_context().exit(0 if well else 1)


def lineage_of(is_wanted: bool) -> Lineage | None:
    """Return the listener of `--openlineage`; None without the option."""
    if not is_wanted:
        return None
    from ottla.openlineage.lineage import Lineage

    return Lineage()


def both(
    one: Callable[[PipelineEvent], None], other: Callable[[PipelineEvent], None]
) -> Callable[[PipelineEvent], None]:
    """Return a listener that passes each event to two others."""

    def report(event: PipelineEvent) -> None:
        one(event)
        other(event)

    return report


@pipeline.command()
@where_option
@names_option
@master_option
@json_option
def plan(where: Path, names: tuple[str, ...], master: str | None, in_json: bool) -> None:
    """Show the plan: the columns after each step, and the location of state and checkpoints."""
    from ottla.pipelines.file.reading import read_pipelines
    from ottla.spark.driver.interruptible import run_interruptibly

    with report_file_errors(), ended_by_signals():
        reads = choose_pipelines(read_pipelines(where), names)
        plans = run_interruptibly(lambda: plans_of(reads, master))
    if in_json:
        show(PLAN, plans, in_json=True)
        return
    for each in plans:
        echo("\n".join(plan_lines(each)) + "\n")


@pipeline.command("list")
@where_option
@json_option
def list_pipelines(where: Path, in_json: bool) -> None:
    """Print the pipelines of a file or a folder with their sources and sinks."""
    from ottla.pipelines.file.reading import AS_WRITTEN, read_pipelines

    with report_file_errors():
        reads = read_pipelines(where, AS_WRITTEN)
    rows = [(r.name, r.model.source.describe(), r.model.sink.describe(), r.document.file) for r in reads]
    show(("NAME", "SOURCE", "SINK", "FILE"), rows, in_json=in_json)


class PipelinePlan(NamedTuple):
    """The plan of a pipeline, under PLAN's headings."""

    name: str
    steps: list[dict[str, Any]]
    sink: str
    promise: str
    checkpoint: str
    begins: str
    schema_changes: list[str]
    """The schemas of registered values that have changed since the last run."""


def plans_of(reads: Sequence[PipelineDefinition], master: str | None) -> list[PipelinePlan]:
    """Return the plans of pipelines; this starts a Spark session."""
    from ottla.pipelines.file.reading import checkpoints_of
    from ottla.pipelines.manager.manager import build_all
    from ottla.pipelines.manager.registered_schemas import ensure_schemas
    from ottla.pipelines.manager.session import session_for
    from ottla.pipelines.manager.state_directory import StateDirectory

    ensure_schemas(reads)
    spark = session_for(reads, master)
    homes = {read.name: StateDirectory(checkpoints_of(read), read.name) for read in reads}
    plans = [plan_of(built, homes[built.read.name]) for built in build_all(reads, spark, homes)]
    spark.stop()
    return plans


def plan_of(built: Built, home: StateDirectory) -> PipelinePlan:
    steps = [
        {"step": name, "columns": {field.name: field.dataType.simpleString() for field in schema.fields}}
        for name, schema in built.steps
    ]
    from ottla.pipelines.manager.registered_schemas import changes_of

    sink = built.read.model.sink
    conflict = home.find_conflict(built.fingerprint)
    begins = conflict or ("starts from the beginning" if home.is_new else "continues from its checkpoint")
    effect = "the pipeline continues with it" if conflict is None else "the pipeline cannot continue"
    changes = [f"{change}; {effect}" for change in changes_of(built.read, built.schemas)]
    return PipelinePlan(built.read.name, steps, sink.describe(), sink.promise(), str(home.checkpoint), begins, changes)


def plan_lines(plan: PipelinePlan) -> Iterator[str]:
    """Yield the lines of a plan as text."""
    yield plan.name
    for each in plan.steps:
        yield f"  {each['step']}"
        yield "    " + ", ".join(f"{name} {kind}" for name, kind in each["columns"].items())
    yield f"  to {plan.sink}, {plan.promise}"
    yield f"  checkpoint {plan.checkpoint}: {plan.begins}"
    for change in plan.schema_changes:
        yield f"  {change}"


@contextmanager
def metrics_at(place: str | None) -> Iterator[Callable[[Callable[[], list[Facts]]], None]]:
    """Serve a metrics page if an address is given, from before Spark starts; yield the function that sets its source."""
    if place is None:
        yield lambda facts: None
        return
    from ottla.pipelines.manager.metrics import page_of_metrics

    host, port = place_of("--metrics", place)
    with ExitStack() as stack:
        with read_as_usage():
            url, collector = stack.enter_context(page_of_metrics(host, port))
        echo(f"ottla pipeline: metrics at {url}", err=True)

        def show(facts: Callable[[], list[Facts]]) -> None:
            collector.facts = facts

        yield show


@pipeline.command()
@where_option
@json_option
def validate(where: Path, in_json: bool) -> None:
    """Check a pipeline file, or all files of a folder, and print errors with their positions."""
    checked = check_file(where) if in_json else check_or_exit(where)
    if in_json:
        show(MISTAKES, [(*one.place, one.sentence) for one in checked.mistakes], in_json=True)
        click.get_current_context().exit(1 if checked.mistakes else 0)
    for one in checked.unchecked:
        echo(f"{one.place}: not checked: {one.sentence}", err=True)
    for one in checked.changes:
        echo(f"{one.place}: {one.sentence}; ottla pipeline plan shows whether the pipeline can continue", err=True)
    names = ", ".join(read.name for read in checked.found)
    count = len(checked.found)
    echo(f"{where}: {count} pipeline{'s' * (count != 1)}, no errors: {names}")


class CheckedFile(NamedTuple):
    """The result of `validate`."""

    found: Sequence[PipelineDefinition]
    mistakes: Sequence[Mistake]
    unchecked: Sequence[Mistake] = ()
    """What could not be checked, because a server is not available."""
    changes: Sequence[Mistake] = ()
    """Schemas that have changed since the last run."""


def check_file(where: Path) -> CheckedFile:
    """Check the pipelines of a file."""
    from ottla.pipelines.file.reading import read_pipelines
    from ottla.pipelines.manager.databases import check_servers
    from ottla.pipelines.manager.registered_schemas import check_schemas
    from ottla.pipelines.place import PipelineFileError

    try:
        found = read_pipelines(where)
    except PipelineFileError as error:
        return CheckedFile([], error.mistakes)
    mistakes, unchecked = check_servers(found)
    report = check_schemas(found)
    return CheckedFile(found, [*mistakes, *report.wrong], [*unchecked, *report.unchecked], report.changes)


def check_or_exit(where: Path) -> CheckedFile:
    """Check as `check_file`; print the errors and end the command if there are any."""
    from ottla.pipelines.place import PipelineFileError

    with report_file_errors():
        checked = check_file(where)
        if checked.mistakes:
            raise PipelineFileError(checked.mistakes)
    return checked


@pipeline.command()
def schema() -> None:
    """Print the JSON Schema of pipeline files, for editors."""
    from ottla.pipelines.file.schema import json_schema

    echo(to_json(json_schema(), indent=2))


for command in (*pipeline_control.COMMANDS, new_connector, clean):
    pipeline.add_command(command)
