"""`topic_sensor`: reads the records after the cursor, and requests a run for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from ottla.client.consumer import Consumer, ConsumerRecord
from ottla.client.consumer.topic_table import OURS, partitions_of, poll_spans
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.model import TopicPartition
from ottla.topic_cursor import TopicCursor, parse_cursor

with extra("dagster"):
    from dagster import DefaultSensorStatus, RunRequest, SensorDefinition, SensorEvaluationContext, SensorResult, sensor

TAG = "ottla/"
"""The prefix of the tags with topic, partition and offset."""


def topic_sensor(
    topics: str | Iterable[str],
    config: Mapping[str, Any] | None = None,
    /,
    *,
    target: Any,
    run_request: Callable[[ConsumerRecord[Any, Any]], RunRequest] | None = None,
    name: str | None = None,
    start: Literal["earliest", "latest"] = "latest",
    max_records: int = 100,
    minimum_interval_seconds: int | None = None,
    default_status: DefaultSensorStatus = DefaultSensorStatus.STOPPED,
    **settings: Any,
) -> SensorDefinition:
    """Return a sensor that requests one run of `target` for each record of the topics.

    `run_request` makes the request for a record, such as its `run_config`; its run key and tags are set here. An
    evaluation requests at most `max_records` runs. A new sensor begins at the `latest` or `earliest` offset. Other arguments are
    settings of a Consumer. Only committed records are read, no group is joined, and the cursor is Dagster's.
    """
    names = [topics] if isinstance(topics, str) else list(topics)
    if not names:
        raise ConfigError("topic_sensor needs a topic, such as 'orders'")
    if not 1 <= max_records <= 10_000:
        raise ConfigError(f"invalid value {max_records} for max_records: expected a number from 1 to 10000")
    given = {key.replace("_", "."): value for key, value in [*(config or {}).items(), *settings.items()]}
    reading = {
        **OURS,
        **given,
        "auto.offset.reset": "none",
        "enable.auto.commit": False,
        "max.poll.records": max_records,
    }

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        cursor = parse_cursor(context.cursor)
        with Consumer(reading) as consumer:
            tps = [TopicPartition(topic, info.partition) for topic in names for info in partitions_of(consumer, topic)]
            first, end = consumer.beginning_offsets(tps), consumer.end_offsets(tps)
            ids = {topic: str(found) for topic in names if (found := consumer.topic_id(topic)).int}
            if cursor is None:
                cursor = TopicCursor(first if start == "earliest" else end, ids)
            positions = cursor.start_offsets(ids, first, end)
            spans = {tp: (positions[tp], end[tp]) for tp in tps if positions[tp] < end[tp]}
            requests: list[RunRequest] = []
            for records in poll_spans(consumer, spans, consumer.poll) if spans else ():
                requests += [request_of(record, run_request, ids.get(record.topic)) for record in records]
                positions |= {tp: consumer.position(tp) for tp in spans}
                if requests:
                    break
        return SensorResult(run_requests=requests, cursor=TopicCursor(positions, ids).to_json())

    return sensor(
        name=name or f"{'_'.join(''.join(c if c.isalnum() else '_' for c in topic) for topic in names)}_sensor",
        target=target,
        minimum_interval_seconds=minimum_interval_seconds,
        default_status=default_status,
    )(evaluate)


def request_of(
    record: ConsumerRecord[Any, Any],
    make: Callable[[ConsumerRecord[Any, Any]], RunRequest] | None,
    topic_id: str | None,
) -> RunRequest:
    """Return the request of a record with its run key and tags."""
    made = RunRequest() if make is None else make(record)
    place = {"topic": record.topic, "partition": str(record.partition), "offset": str(record.offset)}
    return RunRequest(
        run_key=f"{record.topic}/{topic_id or '-'}/{record.partition}/{record.offset}",
        run_config=made.run_config,
        tags={**made.tags, **{f"{TAG}{key}": value for key, value in place.items()}},
        job_name=made.job_name,
        asset_selection=made.asset_selection,
        partition_key=made.partition_key,
    )
