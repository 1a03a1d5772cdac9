"""Runs many pipelines in one Spark session: starts them one after the other, and minds each by itself.

Six queries that start at once on two cores die of the ten seconds that Spark gives a Python worker to connect back; so the next
starts when the one before has looked for rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from pyspark.sql import SparkSession

from ottla.errors import OttlaError
from ottla.pipelines.file.reading import Read, checkpoints_of
from ottla.pipelines.manager.build import Built, build
from ottla.pipelines.manager.home import Home
from ottla.pipelines.manager.life import State
from ottla.pipelines.manager.runner import Runner, Told
from ottla.pipelines.manager.topics import ensure_topics
from ottla.pipelines.place import Mistake, PipelineFileError

PAUSE = 0.1
"""Seconds between two looks."""


class Manager:
    """Pipelines that are run together."""

    def __init__(
        self,
        reads: Sequence[Read],
        spark: SparkSession,
        *,
        once: bool = False,
        tell: Callable[[Told], None] = lambda told: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop = threading.Event()
        self._clock = clock
        self._once = once
        self._spark = spark
        self.homes = {read.name: Home(checkpoints_of(read), read.name) for read in reads}
        try:
            for home in self.homes.values():
                home.take()
            ensure_topics(reads)
            built = build_all(reads, spark)
            check_checkpoints(built, self.homes)
        except BaseException:
            self._give_back()
            raise
        self.runners = [Runner(one, self.homes[one.read.name], once, tell) for one in built]

    def run(self) -> bool:
        """Until all are over or `stop` is called; whether none has failed."""
        try:
            while not self._stop.is_set() and not all(runner.life.over for runner in self.runners):
                self.step()
                self._stop.wait(PAUSE)
            for runner in reversed(self.runners):
                runner.stop()
        except Exception as error:
            if is_there(self._spark):
                raise
            raise OttlaError(
                "the Java process of Spark has ended; run the pipelines again: they go on where they were"
            ) from error
        finally:
            self._give_back()
        return all(runner.life.state is not State.FAILED for runner in self.runners)

    def step(self) -> None:
        """Look at each once; one at a time may start, and what runs once waits for what it may read from."""
        for number, runner in enumerate(self.runners):
            before = self.runners[:number] if self._once else []
            busy = any(one.is_getting_going for one in self.runners) or not all(one.life.over for one in before)
            runner.step(self._clock(), may_start=not busy)

    def stop(self) -> None:
        """Have `run` end; from a signal or another thread."""
        self._stop.set()

    def _give_back(self) -> None:
        for home in self.homes.values():
            home.give_back()


def is_there(spark: SparkSession) -> bool:
    """Whether the Java process of a session answers."""
    try:
        return bool(cast(Any, spark)._jvm.java.lang.System.nanoTime())
    except Exception:  # of whatever kind: it speaks to a socket that is closed
        return False


def build_all(reads: Iterable[Read], spark: SparkSession) -> list[Built]:
    """All of them, or all that is wrong with them."""
    found: list[Built] = []
    mistakes: list[Mistake] = []
    for read in reads:
        try:
            found.append(build(read, spark))
        except PipelineFileError as error:
            mistakes += error.mistakes
    if mistakes:
        raise PipelineFileError(mistakes)
    return found


def check_checkpoints(built: Iterable[Built], homes: dict[str, Home]) -> None:
    """Each goes on with a checkpoint of its own making, and is written down as it is now."""
    built = list(built)
    refused = [(one, homes[one.read.name].refusal(one.fingerprint)) for one in built]
    mistakes = [Mistake(one.read.place(), reason) for one, reason in refused if reason is not None]
    if mistakes:
        raise PipelineFileError(mistakes)
    for one in built:
        homes[one.read.name].remember(one.fingerprint)
