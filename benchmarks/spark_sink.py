"""Measure rows per second from Spark into a topic, and the duration of a small micro-batch: our sink and Spark's.

    python -m benchmarks.spark_sink [ROWS [ROUNDS]]

Both write rows that Spark generates to our broker, in the same session, in turns. One set of rows costs little to
generate, so that the result shows the cost of the sinks. The other set is padded by `rpad`, which is slower than any
sink. Two further sinks write nothing: `noop`, and a writer in Python that only counts, which is the upper bound for any
sink in Python. The connector is measured with default and with tuned options. It is downloaded from Maven Central for
Spark 4.2.0, so both run on pyspark 4.2.0 in a separate environment (.cache/).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from statistics import median

from rich.table import Table

from benchmarks.race import show
from ottla import Broker
from rivals.spark_connector import ROOT, connector_jars, spark_python

VALUE_BYTES = 100
ROWS = 3_000_000
ROUNDS = 3
BATCHES = 25
BARS = {"ottla": ("kafka, tuned", 1.3), "ottla, exactly once": ("kafka, tuned", 1.0)}
"""The baseline for each sink, and the expected ratio to it."""
Measured = dict[str, list[float]]


def run(servers: str, rows: int, rounds: int) -> dict[str, Measured]:
    """The measurements, as `_spark_sink_session.py` prints them, by what and by writer."""
    python = spark_python()
    jars = ",".join(map(str, connector_jars(python)))
    words = [servers, jars, str(rows), str(rounds), str(BATCHES)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [str(python), "-m", "benchmarks._spark_sink_session", *words]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found: dict[str, Measured] = defaultdict(lambda: defaultdict(list))
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            told = json.loads(line)
            found[told["what"]][told["writer"]].append(told["rate"])
    return found


def writes(title: str, measured: Measured) -> Table:
    """Medians of the rates, and of the ratios round by round."""
    result = Table(title=title, title_justify="left")
    for heading in ("writer", "rate", "ratio to tuned", "to reach"):
        result.add_column(heading, justify="left" if heading == "writer" else "right")
    for writer, rates in measured.items():
        rival, bar = BARS.get(writer, ("kafka, tuned", None))
        ratio = median(our / their for our, their in zip(rates, measured[rival], strict=True))
        result.add_row(writer, f"{median(rates) / 1e6:.2f}", f"{ratio:.2f} ×", "" if bar is None else f"{bar:.1f} ×")
    return result


def batches(measured: Measured) -> Table:
    """Medians of the times of micro-batches."""
    result = Table(title="A micro-batch of five records from topic to topic, ms", title_justify="left")
    for heading in ("writer", "p50", "ratio", "to reach"):
        result.add_column(heading, justify="left" if heading == "writer" else "right")
    theirs = median(measured["kafka"])
    for writer, spans in measured.items():
        bar = "" if writer == "kafka" else "1.0 ×"
        result.add_row(writer, f"{median(spans):.0f}", f"{median(spans) / theirs:.2f} ×", bar)
    return result


def main() -> None:
    given = [int(word) for word in sys.argv[1:]]
    rows, rounds = (*given, *(ROWS, ROUNDS)[len(given) :])
    with Broker(process=True) as broker:
        measured = run(broker.bootstrap_servers, rows, rounds)
    for what, words in {"write": "quickly made rows", "padded": "rows padded by rpad"}.items():
        title = f"{rows:,} {words} of {VALUE_BYTES} bytes, million"
        show(writes(f"{title} a second", measured[what]))
        show(writes(f"{title} for each second of a processor (Java and its workers)", measured[f"{what}, spent"]))
    show(batches(measured["batch"]))


if __name__ == "__main__":
    main()
