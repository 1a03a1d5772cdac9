"""The demo's own parts: its pipelines on a few days of flights, and its referee."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from rich.progress import Progress

from examples.flights import data
from examples.flights.check import compare, compare_table
from examples.flights.demo import run_of
from examples.flights.faults import Fault, MortalBroker
from examples.flights.replay import close_input, records
from examples.flights.results import count, read_delays, read_places
from examples.flights.spark_process import Job, JobError
from examples.flights.worst_days import by_day
from ottla import Admin, Broker, NewTopic, Producer
from ottla.pipelines.file.reading import read_pipelines
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.runner import PipelineEvent
from tests.spark.topics import Topics

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    """Three days with a change of the clock among them, and both ends of the year."""
    frame = data.flights()
    wanted = frame.month.astype(str) + "/" + frame.day.astype(str)
    return frame[wanted.isin(["1/1", "3/10", "12/31"])].reset_index(drop=True)


def table_of(expected: pd.DataFrame) -> pd.DataFrame:
    """Return the output of a job without a mistake."""
    rows = expected.reset_index()
    return rows.assign(cancelled=rows["flights"] - rows["departed"], airline=rows["carrier"].map(data.airlines()))


@pytest.mark.behaviour("D4")
def test_the_pipelines_count_every_flight_once(topics: Topics, flights: pd.DataFrame, tmp_path: Path) -> None:
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("flights", 3, 1), NewTopic("delays", 1, 1)])
        with Producer(bootstrap_servers=servers) as producer:
            for record in records(flights):
                producer.send("flights", record.value, key=record.key, timestamp=record.timestamp)
            close_input(producer)
        assert count(servers, "flights") == len(flights) + 3
        file = Path(run_of(tmp_path)[-2])
        environment = {"FLIGHTS_SERVERS": servers, "FLIGHTS_TABLE": str(tmp_path / "table")}
        events: list[PipelineEvent] = []
        assert Manager(read_pipelines(file, environment), topics.spark, once=True, on_event=events.append).run()
        last = {one.pipeline: one.facts["position"] for one in events if one.event == "progress"}
        assert last == {"delays": len(flights) + 3, "flights": len(flights) + 3}
        found, places = read_delays(servers), read_places(tmp_path / "table")
    verdict = compare(len(flights), found, data.expected_delays(flights), data.airlines())
    assert verdict.good, verdict
    assert str(verdict) == f"{len(flights)} flights in, {len(flights)} counted, 0 missing, 0 counted twice"
    kept = compare_table(len(flights), places)
    assert str(kept) == f"Delta table: {len(flights)} flights, 0 missing, 0 there twice"


def test_the_referee_reports_missing_and_duplicate_records(flights: pd.DataFrame) -> None:
    expected, airlines = data.expected_delays(flights), data.airlines()
    right = table_of(expected)
    twice, once = right.iloc[:1], right.iloc[1:]
    assert compare(len(flights), right, expected, airlines).good
    doubled = compare(len(flights), pd.concat([right, twice]), expected, airlines)
    assert (doubled.missing, doubled.counted_twice, doubled.good) == (0, twice["flights"].sum(), False)
    short = compare(len(flights), once, expected, airlines)
    assert (short.missing, short.counted_twice, short.good) == (twice["flights"].sum(), 0, False)
    lost = compare(len(flights) - 1, right, expected, airlines)
    assert (lost.missing, lost.counted_twice, lost.good) == (0, 0, False)


def test_the_referee_of_the_table_sees_what_is_missing_and_what_is_there_twice() -> None:
    places = pd.DataFrame({"partition": [0, 0, 1], "offset": [0, 1, 0]})
    assert compare_table(3, places).good
    short = compare_table(4, places)
    assert (short.missing, short.twice, short.good) == (1, 0, False)
    doubled = compare_table(3, pd.concat([places, places.iloc[:1]]))
    assert (doubled.missing, doubled.twice, doubled.good) == (0, 1, False)


def test_a_broker_that_is_killed_is_there_again_with_all_it_had(tmp_path: Path) -> None:
    broker = MortalBroker(str(tmp_path))
    try:
        with Producer(bootstrap_servers=broker.address) as producer:
            producer.send("flights", b"1").result(20)
            assert broker.kill().startswith("kill -9 ")
            producer.send("flights", b"2").result(60)
        assert count(broker.address, "flights") == 2
    finally:
        broker.close()


SLOW_JOB = """
import json, sys, time
from pathlib import Path
place = Path(sys.argv[1])
for position in range(int(place.read_text() or 0), 11):
    place.write_text(str(position))
    for name in ("delays", "flights"):
        print(json.dumps({"pipeline": name, "event": "progress", "position": position}), flush=True)
    time.sleep(0.05)
"""
"""A slow job that continues from its checkpoint."""


def job(tmp_path: Path, *faults: Fault) -> tuple[Job, io.StringIO]:
    """Such a job of ten records, and what is said while it runs."""
    said = io.StringIO()
    place = tmp_path / "place"
    place.touch()
    progress = Progress(console=Console(file=said, width=200), disable=True)
    command = [sys.executable, "-c", SLOW_JOB, str(place)]
    return Job(command, tmp_path / "log", 10, progress, list(faults)), said


def test_spark_is_killed_and_the_broker_struck_when_it_is_time_and_the_job_continues(tmp_path: Path) -> None:
    running, said = job(tmp_path, Fault(0.3, "Spark was killed"), Fault(0.6, "it was struck", lambda: "struck"))
    running.run()
    first, second = said.getvalue().splitlines()
    assert re.fullmatch(r"at 3 flights: kill -9 \d+, Spark; it starts again and goes on by its checkpoints", first)
    assert re.fullmatch(r"at ([6-9]|10) flights: struck", second)  # the job does not wait for its readers
    assert (tmp_path / "place").read_text() == "10"
    assert running.faults == []


def test_a_planted_fault_that_does_not_occur_is_reported(tmp_path: Path) -> None:
    running, _ = job(tmp_path, Fault(1.5, "Spark was killed"))
    with pytest.raises(JobError, match="the pipelines were over before Spark was killed"):
        running.run()


@pytest.mark.parametrize("column", ["cancelled", "mean_delay", "worst_delay"])
def test_the_referee_sees_a_figure_that_is_wrong(flights: pd.DataFrame, column: str) -> None:
    expected = data.expected_delays(flights)
    wrong = table_of(expected)
    wrong[column] = wrong[column].where(wrong.index != 3, wrong[column] + 1)
    verdict = compare(len(flights), wrong, expected, data.airlines())
    assert not verdict.good
    assert len(verdict.wrong) == 1


def test_a_day_s_delay_is_that_of_the_flights_that_left(flights: pd.DataFrame) -> None:
    days = by_day(table_of(data.expected_delays(flights)))
    first = flights[(flights.month == 1) & (flights.day == 1)]
    assert days.loc["2013-01-01", "flights"] == len(first)
    assert days.loc["2013-01-01", "cancelled"] == first.dep_delay.isna().sum()
    assert days["mean_delay"].iloc[0] == pytest.approx(first.dep_delay.mean())
    assert days["worst_delay"].iloc[0] == first.dep_delay.max()
