"""What Prometheus is told of pipelines: names after the JMX metrics of Kafka Connect, whose REST interface they have too.

Made of what the manager knows already, at the moment in which somebody asks: a pipeline does nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.cannot_listen import cannot_listen
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.life import State

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

GAUGE, COUNTER = "gauge", "counter"
LABEL = "connector"
STATUS = "kafka_connect_connector_status"


class PipelineMetric(NamedTuple):
    """One number of each pipeline."""

    name: str
    """Without `_total`, which the library adds to a counter."""
    kind: str
    meaning: str
    fact: str
    """Of `Facts`; without a sample where that is None."""


METRICS = (
    PipelineMetric(
        "kafka_connect_source_task_source_record_poll", COUNTER, "Rows read from the source, by pipeline.", "rows_in"
    ),
    PipelineMetric(
        "kafka_connect_sink_task_sink_record_send", COUNTER, "Rows that came to the sink, by pipeline.", "rows_out"
    ),
    PipelineMetric(
        "kafka_connect_task_error_deadletterqueue_produce_requests",
        COUNTER,
        "Rows written to the topic of dead letters, by pipeline.",
        "dead_letters",
    ),
    PipelineMetric(
        "kafka_connect_source_task_records_lag_max",
        GAUGE,
        "The most offsets that a partition of the source had left after the last micro-batch.",
        "lag",
    ),
    PipelineMetric(
        "kafka_connect_sink_task_last_batch_seconds", GAUGE, "How long the last micro-batch took.", "batch_seconds"
    ),
    PipelineMetric(
        "kafka_connect_connector_consecutive_failures", GAUGE, "How often it has failed in a row.", "failures"
    ),
    PipelineMetric(
        "kafka_connect_connector_last_heard_timestamp_seconds",
        GAUGE,
        "When a pipeline was last heard of, in seconds since 1970.",
        "at",
    ),
)


class PipelineCollector:
    """A collector for `prometheus_client`; `facts` is asked anew each time."""

    def __init__(self, facts: Callable[[], Iterable[Facts]]) -> None:
        self.facts = facts

    def collect(self) -> Iterator[Metric]:
        """As prometheus-client asks for it."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        known = list(self.facts())
        status = GaugeMetricFamily(STATUS, "1 for the state in which a pipeline is, else 0.", labels=(LABEL, "status"))
        for facts in known:
            for state in State:
                status.add_metric((facts.name, state), facts.state == state)
        yield status
        for metric in METRICS:
            kind: Any = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
            family = kind(metric.name, metric.meaning, labels=(LABEL,))
            for facts in known:
                value = getattr(facts, metric.fact)
                if value is not None:
                    family.add_metric((facts.name,), value)
            yield family


@contextmanager
def page_of_metrics(host: str, port: int) -> Iterator[tuple[str, PipelineCollector]]:
    """`/metrics` over HTTP until the end of the `with` statement: its address, and whose `facts` it tells.

    ConfigError where that address cannot be had, MissingExtraError without prometheus-client.
    """
    with extra("metrics"):
        from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, start_http_server

    registry, collector = CollectorRegistry(), PipelineCollector(lambda: ())
    registry.register(collector)
    for own in (ProcessCollector, PlatformCollector):
        own(registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise ConfigError(cannot_listen(error, host, port, "--metrics")) from None
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_address[1]}/metrics", collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
