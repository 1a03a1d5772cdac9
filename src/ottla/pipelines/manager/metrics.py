"""The metrics of pipelines for Prometheus, named after the JMX metrics of Kafka Connect.

They are computed from the manager's status when they are scraped; pipelines do no work for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.cannot_listen import cannot_listen
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.lifecycle import PipelineState

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

GAUGE, COUNTER = "gauge", "counter"
LABEL = "connector"
STATUS = "kafka_connect_connector_status"


class PipelineMetric(NamedTuple):
    """One number of each pipeline."""

    name: str
    """The name without `_total`, which the library appends to a counter."""
    kind: str
    meaning: str
    fact: str
    """The attribute of `Facts`; there is no sample while it is None."""


METRICS = (
    PipelineMetric(
        "kafka_connect_source_task_source_record_poll", COUNTER, "Rows read from the source, by pipeline.", "rows_in"
    ),
    PipelineMetric(
        "kafka_connect_sink_task_sink_record_send", COUNTER, "Rows written to the sink, by pipeline.", "rows_out"
    ),
    PipelineMetric(
        "kafka_connect_task_error_deadletterqueue_produce_requests",
        COUNTER,
        "Rows written to the dead-letter topic, by pipeline.",
        "dead_letters",
    ),
    PipelineMetric(
        "kafka_connect_source_task_records_lag_max",
        GAUGE,
        "The most offsets that a partition of the source had left after the last micro-batch.",
        "lag",
    ),
    PipelineMetric(
        "kafka_connect_sink_task_last_batch_seconds",
        GAUGE,
        "Duration of the last micro-batch in seconds.",
        "batch_seconds",
    ),
    PipelineMetric(
        "kafka_connect_connector_consecutive_failures", GAUGE, "Consecutive failures of the pipeline.", "failures"
    ),
    PipelineMetric(
        "kafka_connect_connector_last_heard_timestamp_seconds",
        GAUGE,
        "Time of the pipeline's last event, in seconds since 1970.",
        "at",
    ),
)


class PipelineCollector:
    """A collector for `prometheus_client`; `facts` is called at each scrape."""

    def __init__(self, facts: Callable[[], Iterable[Facts]]) -> None:
        self.facts = facts

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families, in the interface of prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        known = list(self.facts())
        status = GaugeMetricFamily(STATUS, "1 for the state in which a pipeline is, else 0.", labels=(LABEL, "status"))
        for facts in known:
            for state in PipelineState:
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
    """Serve `/metrics` over HTTP until the end of the block; return its address and its collector.

    ConfigError if the address cannot be used, MissingExtraError without prometheus-client.
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
        name = f"[{host}]" if ":" in host else host
        yield f"http://{name}:{server.server_address[1]}/metrics", collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
