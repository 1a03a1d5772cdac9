"""Runs one pipeline: its queries, its state machine, and its events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.config.common_config import shared_by_all
from ottla.errors import ConfigError
from ottla.pipelines.dead_letters import RefusedBatchError
from ottla.pipelines.manager.build import Built
from ottla.pipelines.manager.ending import end_queries
from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.lifecycle import HELD, Lifecycle, PipelineState
from ottla.pipelines.manager.progress import OBSERVED
from ottla.pipelines.manager.progress_tracker import ProgressTracker, Report
from ottla.pipelines.manager.reasons import describe_incompatible_state, reason_of, texts_of
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.pipeline_context import SERVERS, QuerySettings
from ottla.pipelines.place import PipelineFileError
from ottla.pipelines.sinks import Sink
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import Source
from ottla.pipelines.sources.database import DatabaseSource
from ottla.pipelines.sources.postgres_cdc import PostgresCdcSource
from ottla.pipelines.sources.topic import TopicBase
from ottla.spark.sink.dead_letter_count import COUNT_FILE, read_count
from ottla.spark.tables.errors import NullInColumnError

STARTING_SECONDS = 60.0
"""The time that the next pipeline waits for one that is starting."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two checks of queries. A check makes several calls to Java, so idle queries are checked less often."""
INITIALIZING = "Initializing sources"
"""Spark's status message of a query that has not checked for rows yet."""


class PipelineEvent(NamedTuple):
    """An event of a pipeline."""

    pipeline: str
    event: str
    facts: Mapping[str, Any]


class Runner:
    """Starts the queries of a pipeline, supervises them, and restarts them."""

    def __init__(
        self,
        built: Built,
        home: StateDirectory,
        once: bool,
        on_event: Callable[[PipelineEvent], None],
        rebuild: Callable[[Built], Built] | None = None,
    ) -> None:
        """Create a runner. `rebuild` builds a pipeline again, with the current columns of its source."""
        self.built, self.home = built, home
        self._rebuild = rebuild
        self.name = built.read.name
        self.lifecycle = Lifecycle(once)
        self.facts = Facts(self.name, *describe_ends(built))
        self._on_event = on_event
        self._queries: list[StreamingQuery] = []
        self._events = ProgressTracker()
        self._sink_dead_letters = self._count_sink_dead_letters()
        self._look_at, self._patience = 0.0, 0.0
        if home.target is not None:
            self.pause_or_stop(PipelineState(home.target))

    @property
    def is_starting(self) -> bool:
        return self.lifecycle.state is PipelineState.STARTING

    def step(self, now: float, may_start: bool) -> None:
        """Start the pipeline or check its queries, if it is time."""
        if may_start and self.lifecycle.can_start(now):
            self.start(now)
        elif self._queries and now >= self._look_at:
            news = self.check(now)
            eager = news or self.lifecycle.once or self.is_starting
            self._patience = 0.0 if eager else min(max(2 * self._patience, SHORTEST_PAUSE), LONGEST_PAUSE)
            self._look_at = now + self._patience

    def start(self, now: float) -> None:
        """Start the queries; mistakes of the pipeline file are not retried."""
        self.lifecycle = self.lifecycle.as_started(now)
        self.report_event("starting", source=self.facts.source, sink=self.facts.sink)
        try:
            self._ensure_home()
            if self.lifecycle.failures and self._rebuild is not None and has_columns_of_database(self.built):
                self.built = self._rebuild(self.built)
            self._queries = [self._start_main(), *self._start_bad()]
        except PipelineFileError as error:  # the database may be unavailable for a while, or the table be corrected
            self._failed(error, now)
        except ConfigError as error:
            self.fail_permanently(self._hide_secrets(error))
        except (PySparkException, Py4JJavaError) as error:  # not all Java exceptions have a Python class
            self._failed(error, now)

    def check(self, now: float) -> bool:
        """Check the queries; return True if there was progress."""
        if not self.home.is_there():
            self.fail_permanently(self._missing_directory_error())
            return True
        ended = [query for query in self._queries if not query.isActive]
        news = self._report_progress()  # includes the last batch of a query that has ended
        errors = [error for query in ended if (error := query.exception()) is not None]
        if errors:
            self._failed(errors[0], now)
        elif len(ended) == len(self._queries):
            self._queries = []
            self.lifecycle = (
                self.lifecycle.as_done()
                if self.lifecycle.once
                else self.lifecycle.as_failed("its query ended by itself", now)
            )
            self.report_event(str(self.lifecycle.state), reason=self.lifecycle.reason)
        elif self.is_starting and self._has_started(now):
            self.lifecycle = self.lifecycle.as_running()
            self.report_event("running")
        return news or bool(ended)

    def fail_permanently(self, reason: str) -> None:
        """Fail without a retry."""
        self._end_queries()
        self.lifecycle = self.lifecycle.as_refused(reason)
        self.report_event("failed", reason=reason)

    def pause_or_stop(self, state: PipelineState) -> None:
        """Pause or stop until resumed; a batch that does not complete soon is run again then."""
        assert state in HELD
        self._end_queries()
        self.lifecycle = self.lifecycle.as_paused() if state is PipelineState.PAUSED else self.lifecycle.as_halted()
        self.report_event(str(state))
        if state is PipelineState.STOPPED:
            self.home.unlock()

    def restart(self, built: Built, now: float) -> None:
        """Start the newly built pipeline."""
        self._end_queries()
        self.built = built
        self._events.expect_new_queries()
        self.lifecycle = self.lifecycle.as_restarted(now)
        self.report_event("waiting")

    def stop(self, until: float | None = None) -> None:
        """End the queries; a batch that does not complete by `until` is run again at the next start."""
        try:
            self._end_queries(until)
        finally:
            if not self.lifecycle.is_over and self.lifecycle.state not in HELD:
                self.lifecycle = self.lifecycle.as_stopped()
                self.report_event("stopped")

    def report_event(self, event: str, **facts: Any) -> None:
        """Report an event to the listener, and write the status."""
        known = {name: value for name, value in facts.items() if value is not None}
        self.facts = self.facts.after(event, known, str(self.lifecycle.state), round(time.time(), 3))
        self._on_event(PipelineEvent(self.name, event, known))
        self.home.write_status(self.facts.to_json())

    def _ensure_home(self) -> None:
        if not self.home.is_there():
            raise ConfigError(self._missing_directory_error())

    def _missing_directory_error(self) -> str:
        return (
            f"the folder {self.home.folder}, which has its checkpoint, was deleted or replaced; restore it and restart "
            "the pipeline, or run it again from the start of its source"
        )

    def _start_main(self) -> StreamingQuery:
        model = self.built.read.model
        frame = self.built.frame.observe(OBSERVED, F.count(F.lit(1)).alias("count"))
        query_settings = QuerySettings(
            self.name,
            str(self.home.checkpoint),
            self._trigger(),
            model.output_mode,
            model.is_routed,
            model.errors.dead_letter_topic if isinstance(model.sink, TopicSinkBase) else None,
            self._events.add_dead_letters,
        )
        return model.sink.start(frame, self.built.context, query_settings)

    def _start_bad(self) -> list[StreamingQuery]:
        """Return the query of the dead letters, if it has one."""
        bad, source = self.built.bad, self.built.read.model.source
        if bad is None or not isinstance(source, TopicBase):
            return []
        options = self.built.context.client_options("producer", source.bootstrap_servers, shared_by_all(source.kafka))
        query_settings = QuerySettings(f"{self.name}-dead-letters", str(self.home.dead_letters), self._trigger())
        frame: DataFrame = bad.observe(OBSERVED, F.count(F.lit(1)).alias("count"))
        writer = query_settings.writer(frame).format("ottla").options(**options)
        topic = str(self.built.read.model.errors.dead_letter_topic)
        return [writer.option("topic", topic).option("deliveryGuarantee", "exactly_once").start()]

    def _trigger(self) -> dict[str, Any]:
        return {"availableNow": True} if self.lifecycle.once else {"processingTime": self.built.read.model.trigger}

    def _has_started(self, now: float) -> bool:
        waited = now - self.lifecycle.since > STARTING_SECONDS
        return waited or all(query.status["message"] != INITIALIZING for query in self._queries)

    def _count_sink_dead_letters(self) -> int:
        """Return the dead letters that a topic sink has counted for this checkpoint."""
        return read_count(self.home.checkpoint / COUNT_FILE)[1]

    def _report_progress(self) -> bool:
        """Report new progress; return True if there was any."""
        rows, *dead_letters = self._queries
        row_reports = reports_since(rows, self._events.last_row_report)
        dead_letter_reports = [
            one for query in dead_letters for one in reports_since(query, self._events.last_dead_letter_report)
        ]
        total, before = self._count_sink_dead_letters(), self._sink_dead_letters
        self._events.add_dead_letters(total - before if total >= before else total)  # after a reset it starts at 0
        self._sink_dead_letters = total
        events = self._events.process_reports(row_reports, dead_letter_reports)
        for progress in events:
            self.report_event("progress", **progress.facts())
        return bool(events)

    def _failed(self, error: BaseException, now: float) -> None:
        if is_refused_batch(error):
            self.fail_permanently(self._hide_secrets(error))
            return
        what = describe_incompatible_state(error)
        if what is not None:
            self.fail_permanently(self.home.explain_incompatible_change(what))
            return
        self._end_queries()
        self.lifecycle = self.lifecycle.as_failed(self._hide_secrets(error), now)
        again = round(self.lifecycle.start_at - now, 1) if self.lifecycle.state is PipelineState.WAITING else None
        self.report_event(
            "failed", reason=self.lifecycle.reason, failures=self.lifecycle.failures, again_in_seconds=again
        )

    def _end_queries(self, until: float | None = None) -> None:
        """End the queries, and report the batches that completed meanwhile."""
        end_queries(self._queries, until)
        if self._queries:
            self._report_progress()
        self._queries = []

    def _hide_secrets(self, error: BaseException) -> str:
        return self.built.read.secrets.hide(reason_of(error))


def is_refused_batch(error: BaseException) -> bool:
    """Return True if a sink rejected a batch for one of its rows. The next attempt would write the same row."""
    names = (RefusedBatchError.__name__, NullInColumnError.__name__)
    return any(name in text for text in texts_of(error) for name in names)


def has_columns_of_database(built: Built) -> bool:
    """Return True if the columns are those of a database's table, which may have changed."""
    model = built.read.model
    return any(isinstance(one, DatabaseSource | PostgresCdcSource) for one in (model.source, *model.inputs.values()))


def reports_since(query: StreamingQuery, last: str | None) -> list[Report]:
    """Return the reports of a query's batches, oldest first.

    If the last report is known already, this costs one call only.
    """
    if last is not None:
        newest: Any = query.lastProgress
        if newest is None or newest["timestamp"] == last:
            return []
    return [json.loads(one.json) for one in query.recentProgress]


def describe_ends(built: Built) -> tuple[str, str]:
    """Return short descriptions of source and sink, topics with their brokers."""
    model = built.read.model
    return describe_part(model.source, built), describe_part(model.sink, built)


def describe_part(part: Source | Sink, built: Built) -> str:
    """Return a short description of a source or sink. Spark's progress has no name for those written in Python."""
    if not isinstance(part, TopicBase | TopicSinkBase):
        return part.describe()
    servers = built.context.any_client("admin", part)[SERVERS]
    return f"{part.describe()} at {built.read.secrets.hide(servers)}"
