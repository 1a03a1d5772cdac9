"""Sensors of the producer's batches, recorded by the sender."""

from __future__ import annotations

from ottla.client.metrics.client_metrics import MetricsBuilder
from ottla.client.metrics.network_sensors import write_amount, write_counted, write_spread
from ottla.client.metrics.reading import combine_readings
from ottla.client.metrics.registry import Family, Registry


class ProducerSensors:
    """Producer metrics, each recorded once per batch or request."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.batches = registry.sensor()
        """Compressed bytes of each batch."""
        self.waits = registry.sensor()
        """Seconds that each batch was queued."""
        self.requests = registry.sensor()
        """Records of each request."""
        self.splits = registry.sensor()
        self.throttled = registry.sensor()
        """Throttle time in milliseconds of each response."""
        self.sent: Family[str] = Family(registry.sensor)
        """Records of each batch sent, by topic. A retried batch counts again, as in Java."""
        self.bytes: Family[str] = Family(registry.sensor)
        self.compression: Family[str] = Family(registry.sensor)
        """Compressed bytes of each batch divided by its uncompressed bytes, by topic."""
        self.retried: Family[str] = Family(registry.sensor)
        self.failed: Family[str] = Family(registry.sensor)

    def record_sent_batch(self, topic: str, records: int, size_bytes: int, seconds: float) -> None:
        """Record a batch that is sent."""
        self.sent.sensor_for(topic).record(records)
        self.bytes.sensor_for(topic).record(size_bytes)
        self.batches.record(size_bytes)
        self.waits.record(seconds)

    def write(self, builder: MetricsBuilder, now: float) -> None:
        """Write `producer-metrics` and `producer-topic-metrics`."""
        read = self._registry.read
        builder.select_group("producer-metrics")
        write_spread(builder, "batch-size", read(self.batches, now))
        write_spread(builder, "record-queue-time", read(self.waits, now), 1000)
        builder.put("records-per-request-avg", read(self.requests, now).average)
        write_counted(builder, "batch-split", [read(self.splits, now)])
        write_spread(builder, "produce-throttle-time", read(self.throttled, now))
        ratios = {topic: read(sensor, now) for topic, sensor in self.compression.all().items()}
        builder.put("compression-rate-avg", combine_readings(ratios.values()).average)
        for topic, reading in ratios.items():
            builder.select_group("producer-topic-metrics", topic=topic).put("compression-rate", reading.average)
        for name, family in self._families():
            readings = {topic: read(sensor, now) for topic, sensor in family.all().items()}
            write_amount(builder.select_group("producer-metrics"), name, combine_readings(readings.values()))
            for topic, reading in readings.items():
                write_amount(builder.select_group("producer-topic-metrics", topic=topic), name, reading)

    def _families(self) -> tuple[tuple[str, Family[str]], ...]:
        return (
            ("record-send", self.sent),
            ("byte", self.bytes),
            ("record-retry", self.retried),
            ("record-error", self.failed),
        )
