"""The runner of a pipeline without Spark: its query is a fake."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError

from ottla.pipelines.manager.build import Built
from ottla.pipelines.manager.lifecycle import Lifecycle, PipelineState
from ottla.pipelines.manager.runner import PipelineEvent, Runner
from ottla.pipelines.manager.state_directory import StateDirectory

ROWS = 5


class Report(dict[str, Any]):
    """The report of a batch as a pyspark object."""

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
    """A query in a batch that completes when a caller waits for it."""

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
def events() -> list[PipelineEvent]:
    return []


@pytest.fixture
def runner(events: list[PipelineEvent]) -> Runner:
    """Return the runner of a pipeline with one running query."""
    part = SimpleNamespace(describe=lambda: "a part")
    built = SimpleNamespace(read=SimpleNamespace(name="p", model=SimpleNamespace(source=part, sink=part)))
    home = SimpleNamespace(target=None, checkpoint=Path("none"), write_status=lambda facts: None, unlock=lambda: None)
    made = Runner(cast(Built, built), cast(StateDirectory, home), once=False, on_event=events.append)
    made.lifecycle = made.lifecycle.as_started(0.0).as_running()
    made._queries = [cast(Any, Query())]
    return made


@pytest.mark.parametrize(
    ("way", "event"),
    [
        (lambda runner: runner.stop(), "stopped"),
        (lambda runner: runner.pause_or_stop(PipelineState.PAUSED), "paused"),
        (lambda runner: runner.pause_or_stop(PipelineState.STOPPED), "stopped"),
        (lambda runner: runner.restart(runner.built, 1.0), "waiting"),
        (lambda runner: runner.fail_permanently("gone"), "failed"),
    ],
)
def test_the_batch_that_was_waited_for_at_the_end_is_reported(
    runner: Runner, events: list[PipelineEvent], way: Any, event: str
) -> None:
    way(runner)
    assert [one.event for one in events] == ["progress", event]
    assert (runner.facts.rows_in, runner.facts.rows_out, runner.facts.batch) == (ROWS, ROWS, 0)


def test_a_batch_that_was_reported_is_not_reported_again_at_the_end(
    runner: Runner, events: list[PipelineEvent]
) -> None:
    cast(Any, runner._queries[0]).recentProgress = [Report()]
    runner._report_progress()
    runner.stop()
    assert [one.event for one in events] == ["progress", "stopped"]
    assert runner.facts.rows_in == ROWS


class NoFolder(Py4JJavaError):  # type: ignore[misc]
    """Java's error for a folder that cannot be created."""

    def __init__(self) -> None:
        """It has no Java."""

    def __str__(self) -> str:
        return "An error occurred while calling o1.start.\n: java.io.IOException: mkdir of file:/a failed\n\tat a.b"


def test_a_java_error_at_the_start_fails_that_pipeline_and_is_retried(
    runner: Runner, events: list[PipelineEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> Any:
        raise NoFolder

    runner._queries, runner.lifecycle = [], Lifecycle(once=False)
    runner.built.read.secrets = SimpleNamespace(hide=lambda text: text)  # type: ignore[misc, assignment]
    monkeypatch.setattr(runner, "_ensure_home", lambda: None)
    monkeypatch.setattr(runner, "_start_main", start)
    runner.start(1.0)
    assert [one.event for one in events] == ["starting", "failed"]
    assert events[1].facts["reason"] == "mkdir of file:/a failed"
    assert runner.lifecycle.state is PipelineState.WAITING
