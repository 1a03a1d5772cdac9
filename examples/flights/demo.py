"""The demo: broker, replay, Spark, the kills of both, tables, picture, check."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from examples.flights import data
from examples.flights.chart import draw
from examples.flights.check import TableVerdict, Verdict, compare, compare_table
from examples.flights.faults import Fault, MortalBroker
from examples.flights.replay import replay
from examples.flights.results import count, read_delays, read_places
from examples.flights.spark_process import Job, JobError
from examples.flights.timing import Timing
from examples.flights.worst_days import by_day, worst_days
from ottla import Admin, NewTopic, OttlaError
from ottla.spark import ensure_java

PARTITIONS = 6
OUT = Path("out")
TABLE = OUT / "flights"
FILE = Path(__file__).with_name("flights.yaml")
SHOWN = 20
"""The maximum number of wrong rows that are printed."""


class Rate(ProgressColumn):
    """Records per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "", style="progress.data.speed")


def bars(console: Console) -> Progress:
    """Return the progress bars."""
    name, count = TextColumn("{task.description:<36}"), TextColumn("{task.completed:>7,.0f}")
    return Progress(name, BarColumn(bar_width=None), count, Rate(), TimeElapsedColumn(), console=console)


@contextmanager
def started_broker(folder: str, console: Console) -> Iterator[MortalBroker]:
    """Start a broker in a process of its own, with the two topics."""
    broker = MortalBroker(folder)
    try:
        console.print(f"broker on {broker.address}, started in {broker.started_ms:.0f} ms", highlight=False)
        with Admin(bootstrap_servers=broker.address) as admin:
            # The records are of 2013. Retention uses their own timestamps, and would delete all of them.
            keep = {"retention.ms": "-1"}
            admin.create_topics([NewTopic("flights", PARTITIONS, 1, keep), NewTopic("delays", 1, 1, keep)])
        yield broker
    finally:
        broker.close()


@dataclass(frozen=True)
class Results:
    """The results of the pipeline."""

    flights_in: int
    """The number of flights in the topic."""
    delays: pd.DataFrame
    """Every row of the topic `delays`."""
    places: pd.DataFrame
    """The partition and offset of each row of the Delta table."""


def pipeline(console: Console, flights: pd.DataFrame, timing: Timing) -> Results:
    """Send the flights through broker and Spark to a topic and a table, while both are killed once."""
    OUT.mkdir(exist_ok=True)
    shutil.rmtree(TABLE, ignore_errors=True)
    with TemporaryDirectory(prefix="ottla-flights-") as folder, started_broker(folder + "/broker", console) as broker:
        servers = broker.address
        timing.enter("sending")
        with bars(console) as progress:
            replay(servers, flights, progress)
            held = count(servers, "flights")
            faults = [Fault(0.3, "Spark was killed"), Fault(0.6, "the broker was killed", broker.kill)]
            command = run_of(Path(folder))
            known = {"FLIGHTS_SERVERS": servers, "FLIGHTS_TABLE": str(TABLE.absolute())}
            Job(command, OUT / "flights-spark.log", held, progress, faults, timing, environment=known).run()
        timing.enter("reading the results")
        return Results(held - PARTITIONS, read_delays(servers), read_places(TABLE))  # without the closing records


def run_of(folder: Path) -> list[str]:
    """Return the command that runs the pipelines until they have read everything.

    The checkpoints are next to the file.
    """
    file = Path(shutil.copy(FILE, folder))
    return [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(file), "--once"]


def show(console: Console, delays: pd.DataFrame) -> None:
    """Print the table and draw the picture."""
    days = by_day(delays)
    console.print("", worst_days(days), "", sep="\n")
    draw(delays, days, OUT / "flights.png")
    console.print(f"chart in {OUT / 'flights.png'}", highlight=False)


def run(console: Console, timing: Timing) -> tuple[Verdict, TableVerdict]:
    """Run the whole demo."""
    ensure_java()
    flights = data.flights()
    results = pipeline(console, flights, timing)
    timing.enter("checking and drawing")
    verdict = compare(results.flights_in, results.delays, data.expected_delays(flights), data.airlines())
    if not results.delays.empty:
        show(console, results.delays)
    for line in verdict.wrong[:SHOWN]:
        console.print(line, highlight=False)
    return verdict, compare_table(results.flights_in, results.places)


def demo() -> int:
    """Run the demo and print the result. The exit status is 0 only if all checks succeed."""
    console, timing = Console(), Timing("reading the file")
    try:
        verdict, table = run(console, timing)
    except (JobError, OttlaError) as error:
        console.print(str(error), style="red", highlight=False, soft_wrap=True)
        return 1
    console.print(str(timing), highlight=False, soft_wrap=True)
    console.print(str(table), highlight=False, soft_wrap=True)
    console.print(str(verdict), highlight=False, soft_wrap=True)
    return 0 if verdict.good and table.good else 1
