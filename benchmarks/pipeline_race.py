"""Rows per second of pipelines in a file: against the same by hand, with what Spark and its connectors have.

    python -m benchmarks.pipeline_race [CASE] [ROWS]

Cases: sql (topic → SQL → topic), table (topic → table), files (CSV → topic), database (PostgreSQL → topic → PostgreSQL). By hand means
Structured Streaming with the official Kafka connector, Spark's own file formats, Delta's connector and the JDBC source and sink, as their guides show them. All
run in one session by turns over the same data of our broker, in the environment of pyspark 4.2 for which the connector can be had.
Ours is exactly once in each case; by hand it is at least once, but for files and Delta tables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table

from benchmarks.race import show
from ottla import Broker
from rivals.postgresql import postgresql
from rivals.spark_connector import connector_jars, delta_jars, postgresql_jar, spark_python

ROOT = Path(__file__).parents[1]
CASES = {"sql": 1_000_000, "table": 1_000_000, "files": 1_000_000, "database": 300_000}
"""The number of rows in each case."""
ROUNDS = 3
MEASURE = "by hand"


def measured(case: str, rows: int, rounds: int) -> list[dict[str, Any]]:
    """Yield a line for each run, as printed by `_pipeline_race_session`."""
    python = spark_python()
    jars = ",".join(map(str, [*connector_jars(python), *delta_jars(), postgresql_jar()]))
    with Broker(process=True) as broker, TemporaryDirectory() as folder, ExitStack() as stack:
        database = stack.enter_context(postgresql()).url if case == "database" else ""
        asked = [case, broker.bootstrap_servers, database, jars, str(rows), str(rounds), folder]
        command = [str(python), "-m", "benchmarks._pipeline_race_session", *asked]
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        environment.pop("PYSPARK_PYTHON", None)  # the choice of this process
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(case: str, rows: int, found: list[dict[str, Any]]) -> Table:
    """Build the table of medians, and of the median ratio to the hand-written query by round."""
    seconds: dict[str, list[float]] = defaultdict(list)
    spent: dict[str, list[float]] = defaultdict(list)
    for one in found:
        seconds[one["who"]].append(one["seconds"])
        spent[one["who"]].append(one["cpu"])
    result = Table(title=f"{case}: {rows:,} rows", title_justify="left")
    for heading in ("", "rows/s", "ratio", "µs of a core for a row"):
        result.add_column(heading, justify="right" if heading else "left")
    for who, taken in seconds.items():
        ratio = median(theirs / ours for ours, theirs in zip(taken, seconds[MEASURE], strict=True))
        cost = median(spent[who]) / rows * 1e6
        result.add_row(who, f"{rows / median(taken):,.0f}", f"{ratio:.2f} ×", f"{cost:.2f}")
    return result


def main() -> None:
    chosen = sys.argv[1:2] or list(CASES)
    for case in chosen:
        rows = int(sys.argv[2]) if len(sys.argv) > 2 else CASES[case]
        show(table(case, rows, measured(case, rows, ROUNDS)))


if __name__ == "__main__":
    main()
