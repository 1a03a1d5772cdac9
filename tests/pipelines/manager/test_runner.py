"""A pipeline that is run, without a Spark: its query is a stand-in."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError

from ottla.pipelines.manager.build import Built
from ottla.pipelines.manager.home import Home
from ottla.pipelines.manager.life import Life, State
from ottla.pipelines.manager.runner import Runner, Told

ROWS = 5


class Report(dict[str, Any]):
    """Of a batch, as pyspark has it."""

    def __init__(self) -> None:
        super().__init__(
            timestamp="2026-01-01T00:00:01.000Z",
            batchId=0,
            numInputRows=ROWS,
            durationMs={"triggerExecution": 100, "addBatch": 50},
            observedMetrics={"rows": {"count": ROWS}},
            sources=[],
        )
        self.json = json.dumps(self)


class Query:
    """Is at a batch, which is done once somebody waits for it."""

    def __init__(self) -> None:
        self.isActive = True
        self.recentProgress: list[Any] = []

    @property
    def status(self) -> dict[str, Any]:
        at_a_batch = not self.recentProgress
        self.recentProgress = [Report()]
        return {"isTriggerActive": at_a_batch, "message": "Processing new data"}

    @property
    def lastProgress(self) -> Any:
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> None:
        """It has not failed."""

    def stop(self) -> None:
        self.isActive = False


@pytest.fixture
def told() -> list[Told]:
    return []


@pytest.fixture
def runner(told: list[Told]) -> Runner:
    """Of a pipeline whose one query runs."""
    part = SimpleNamespace(describe=lambda: "a part")
    built = SimpleNamespace(read=SimpleNamespace(name="p", model=SimpleNamespace(source=part, sink=part)))
    home = SimpleNamespace(target=None, tell_status=lambda facts: None, give_back=lambda: None)
    made = Runner(cast(Built, built), cast(Home, home), once=False, tell=told.append)
    made.life = made.life.started(0.0).runs()
    made._queries = [cast(Any, Query())]
    return made


@pytest.mark.parametrize(
    ("way", "event"),
    [
        (lambda runner: runner.stop(), "stopped"),
        (lambda runner: runner.hold(State.PAUSED), "paused"),
        (lambda runner: runner.hold(State.STOPPED), "stopped"),
        (lambda runner: runner.go_on(runner.built, 1.0), "waiting"),
        (lambda runner: runner.refuse("gone"), "failed"),
    ],
)
def test_the_batch_that_was_waited_for_at_the_end_is_told(
    runner: Runner, told: list[Told], way: Any, event: str
) -> None:
    way(runner)
    assert [one.event for one in told] == ["progress", event]
    assert (runner.facts.rows_in, runner.facts.rows_out, runner.facts.batch) == (ROWS, ROWS, 0)


def test_a_batch_that_was_told_is_not_told_again_at_the_end(runner: Runner, told: list[Told]) -> None:
    cast(Any, runner._queries[0]).recentProgress = [Report()]
    runner._tell_progress()
    runner.stop()
    assert [one.event for one in told] == ["progress", "stopped"]
    assert runner.facts.rows_in == ROWS


class NoFolder(Py4JJavaError):  # type: ignore[misc]
    """As Java says it of a folder that cannot be made."""

    def __init__(self) -> None:
        """It has no Java."""

    def __str__(self) -> str:
        return "An error occurred while calling o1.start.\n: java.io.IOException: mkdir of file:/a failed\n\tat a.b"


def test_what_java_raises_at_the_start_fails_that_pipeline_and_is_tried_again(
    runner: Runner, told: list[Told], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> Any:
        raise NoFolder

    runner._queries, runner.life = [], Life(once=False)
    runner.built.read.secrets = SimpleNamespace(hidden=lambda text: text)  # type: ignore[misc, assignment]
    monkeypatch.setattr(runner, "_ensure_home", lambda: None)
    monkeypatch.setattr(runner, "_start_main", start)
    runner.start(1.0)
    assert [one.event for one in told] == ["starting", "failed"]
    assert told[1].facts["reason"] == "mkdir of file:/a failed"
    assert runner.life.state is State.WAITING
