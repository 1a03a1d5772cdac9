"""One pipeline that is run: its queries, its life, and what is told of it."""

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
from ottla.pipelines.manager.ending import end
from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.home import Home
from ottla.pipelines.manager.life import HELD, Life, State
from ottla.pipelines.manager.news import News, Report
from ottla.pipelines.manager.outgrown import outgrown
from ottla.pipelines.manager.progress import OBSERVED
from ottla.pipelines.manager.reasons import reason_of, texts_of
from ottla.pipelines.place import PipelineFileError
from ottla.pipelines.sinks import Sink
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import Source
from ottla.pipelines.sources.database import DatabaseSource
from ottla.pipelines.sources.postgres_cdc import PostgresCdcSource
from ottla.pipelines.sources.topic import TopicBase
from ottla.pipelines.surroundings import SERVERS, How
from ottla.spark.tables.errors import NullInColumnError

STARTING_SECONDS = 60.0
"""How long the next pipeline waits for one that does not get going."""
SHORTEST_LOOK, LONGEST_LOOK = 0.1, 2.0
"""Seconds between two looks at queries: a look is some questions to Java, so those at which nothing happens get fewer."""
GETTING_GOING = "Initializing sources"
"""What Spark says of a query that has not looked for rows yet."""


class Told(NamedTuple):
    """Something that happened to a pipeline."""

    pipeline: str
    event: str
    facts: Mapping[str, Any]


class Runner:
    """Starts the queries of a pipeline, looks after them, and starts them again."""

    def __init__(
        self,
        built: Built,
        home: Home,
        once: bool,
        tell: Callable[[Told], None],
        rebuild: Callable[[Built], Built] | None = None,
    ) -> None:
        """`rebuild` builds a pipeline again, with the columns that its source has by then."""
        self.built, self.home = built, home
        self._rebuild = rebuild
        self.name = built.read.name
        self.life = Life(once)
        self.facts = Facts(self.name, *ends_of(built))
        self._tell = tell
        self._queries: list[StreamingQuery] = []
        self._news = News()
        self._look_at, self._patience = 0.0, 0.0
        if home.target is not None:
            self.hold(State(home.target))

    @property
    def is_getting_going(self) -> bool:
        return self.life.state is State.STARTING

    def step(self, now: float, may_start: bool) -> None:
        """Do what is to be done now."""
        if may_start and self.life.may_start(now):
            self.start(now)
        elif self._queries and now >= self._look_at:
            news = self.look(now)
            eager = news or self.life.once or self.is_getting_going
            self._patience = 0.0 if eager else min(max(2 * self._patience, SHORTEST_LOOK), LONGEST_LOOK)
            self._look_at = now + self._patience

    def start(self, now: float) -> None:
        """Start its queries; what the file is to blame for is not tried again."""
        self.life = self.life.started(now)
        self.told("starting", source=self.facts.source, sink=self.facts.sink)
        try:
            self._ensure_home()
            if self.life.failures and self._rebuild is not None and has_columns_of_elsewhere(self.built):
                self.built = self._rebuild(self.built)
            self._queries = [self._start_main(), *self._start_bad()]
        except PipelineFileError as error:  # the database may be away, or the table be mended
            self._failed(error, now)
        except ConfigError as error:
            self.refuse(self._hidden(error))
        except (PySparkException, Py4JJavaError) as error:  # not all that Java says has a class of Spark's
            self._failed(error, now)

    def look(self, now: float) -> bool:
        """See how its queries are; whether there is news."""
        if not self.home.is_there():
            self.refuse(self._vanished())
            return True
        ended = [query for query in self._queries if not query.isActive]
        news = self._tell_progress()  # also what the last batch of one that has ended was
        errors = [error for query in ended if (error := query.exception()) is not None]
        if errors:
            self._failed(errors[0], now)
        elif len(ended) == len(self._queries):
            self._queries = []
            self.life = self.life.done() if self.life.once else self.life.failed("its query ended by itself", now)
            self.told(str(self.life.state), reason=self.life.reason)
        elif self.is_getting_going and self._is_going(now):
            self.life = self.life.runs()
            self.told("running")
        return news or bool(ended)

    def refuse(self, reason: str) -> None:
        """End for good: what is wrong does not go away by itself."""
        self._end_queries()
        self.life = self.life.refused(reason)
        self.told("failed", reason=reason)

    def hold(self, state: State) -> None:
        """Pause or stop it, until it is resumed; a batch that is not done soon is done again then."""
        assert state in HELD
        self._end_queries()
        self.life = self.life.paused() if state is State.PAUSED else self.life.halted()
        self.told(str(state))
        if state is State.STOPPED:
            self.home.give_back()

    def go_on(self, built: Built, now: float) -> None:
        """Start it anew, as it was built anew."""
        self._end_queries()
        self.built = built
        self._news.begin_anew()
        self.life = self.life.again(now)
        self.told("waiting")

    def stop(self, until: float | None = None) -> None:
        """End in order: a batch that is not done by then is done again the next time."""
        try:
            self._end_queries(until)
        finally:
            if not self.life.over and self.life.state not in HELD:
                self.life = self.life.stopped()
                self.told("stopped")

    def told(self, event: str, **facts: Any) -> None:
        """Tell whoever listens, and those who ask later."""
        known = {name: value for name, value in facts.items() if value is not None}
        self.facts = self.facts.after(event, known, str(self.life.state), round(time.time(), 3))
        self._tell(Told(self.name, event, known))
        self.home.tell_status(self.facts.to_json())

    def _ensure_home(self) -> None:
        if not self.home.is_there():
            raise ConfigError(self._vanished())

    def _vanished(self) -> str:
        return (
            f"the folder {self.home.folder}, which has its checkpoint, has gone or is another one; put it back and restart "
            "the pipeline, or run it anew from where its source begins"
        )

    def _start_main(self) -> StreamingQuery:
        model = self.built.read.model
        frame = self.built.frame.observe(OBSERVED, F.count(F.lit(1)).alias("count"))
        how = How(
            self.name,
            str(self.home.checkpoint),
            self._trigger(),
            model.output_mode,
            model.routed,
            model.errors.dead_letter_topic if isinstance(model.sink, TopicSinkBase) else None,
            self._news.add_dead_letters,
        )
        return model.sink.start(frame, self.built.around, how)

    def _start_bad(self) -> list[StreamingQuery]:
        """The query of its dead letters, where it has one."""
        bad, source = self.built.bad, self.built.read.model.source
        if bad is None or not isinstance(source, TopicBase):
            return []
        options = self.built.around.client_options("producer", source.bootstrap_servers, shared_by_all(source.kafka))
        how = How(f"{self.name}-dead-letters", str(self.home.dead_letters), self._trigger())
        frame: DataFrame = bad.observe(OBSERVED, F.count(F.lit(1)).alias("count"))
        writer = how.writer(frame).format("ottla").options(**options)
        topic = str(self.built.read.model.errors.dead_letter_topic)
        return [writer.option("topic", topic).option("deliveryGuarantee", "exactly_once").start()]

    def _trigger(self) -> dict[str, Any]:
        return {"availableNow": True} if self.life.once else {"processingTime": self.built.read.model.trigger}

    def _is_going(self, now: float) -> bool:
        waited = now - self.life.since > STARTING_SECONDS
        return waited or all(query.status["message"] != GETTING_GOING for query in self._queries)

    def _tell_progress(self) -> bool:
        """Whether there was any."""
        rows, *letters = self._queries
        of_rows = reports(rows, self._news.last_of_rows)
        of_letters = [one for query in letters for one in reports(query, self._news.last_of_letters)]
        told = self._news.hear(of_rows, of_letters)
        for progress in told:
            self.told("progress", **progress.facts())
        return bool(told)

    def _failed(self, error: BaseException, now: float) -> None:
        if is_refused_batch(error):
            self.refuse(self._hidden(error))
            return
        what = outgrown(error)
        if what is not None:
            self.refuse(self.home.cannot_go_on(what))
            return
        self._end_queries()
        self.life = self.life.failed(self._hidden(error), now)
        again = round(self.life.start_at - now, 1) if self.life.state is State.WAITING else None
        self.told("failed", reason=self.life.reason, failures=self.life.failures, again_in_seconds=again)

    def _end_queries(self, until: float | None = None) -> None:
        """End them, and tell what came of the batches that were waited for: nobody asks these queries again."""
        end(self._queries, until)
        if self._queries:
            self._tell_progress()
        self._queries = []

    def _hidden(self, error: BaseException) -> str:
        return self.built.read.secrets.hidden(reason_of(error))


def is_refused_batch(error: BaseException) -> bool:
    """True if a sink refused a batch for one of its rows, which the next attempt would write again."""
    names = (RefusedBatchError.__name__, NullInColumnError.__name__)
    return any(name in text for text in texts_of(error) for name in names)


def has_columns_of_elsewhere(built: Built) -> bool:
    """True if a table outside says which columns there are, so that they may be others after a failure."""
    model = built.read.model
    return any(isinstance(one, DatabaseSource | PostgresCdcSource) for one in (model.source, *model.inputs.values()))


def reports(query: StreamingQuery, last: str | None) -> list[Report]:
    """What Spark keeps of a query's batches, oldest first; none if the last is the one of this moment: to ask for one is quicker."""
    if last is not None:
        newest: Any = query.lastProgress
        if newest is None or newest["timestamp"] == last:
            return []
    return [json.loads(one.json) for one in query.recentProgress]


def ends_of(built: Built) -> tuple[str, str]:
    """Source and sink in a few words, topics with their brokers."""
    model = built.read.model
    return placed_at(model.source, built), placed_at(model.sink, built)


def placed_at(part: Source | Sink, built: Built) -> str:
    """A source or sink; Spark's own progress has no name for those that are written in Python."""
    if not isinstance(part, TopicBase | TopicSinkBase):
        return part.describe()
    servers = built.around.any_client("admin", part)[SERVERS]
    return f"{part.describe()} at {built.read.secrets.hidden(servers)}"
