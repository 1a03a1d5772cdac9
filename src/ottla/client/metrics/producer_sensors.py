"""What a producer measures of its batches, told by the sender."""

from __future__ import annotations

from ottla.client.metrics.client_metrics import Sheet
from ottla.client.metrics.network_sensors import write_amount, write_counted, write_spread
from ottla.client.metrics.reading import together
from ottla.client.metrics.registry import Family, Registry


class ProducerSensors:
    """All are recorded once for a batch."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.batches = registry.sensor()
        """Bytes of each batch, as it travels."""
        self.waits = registry.sensor()
        """Seconds of each batch in its queue."""
        self.requests = registry.sensor()
        """Records of each request."""
        self.splits = registry.sensor()
        self.throttled = registry.sensor()
        """Milliseconds that the answer to a request says are to be waited."""
        self.sent: Family[str] = Family(registry.sensor)
        """Records of each batch that is sent, by topic; one that is sent again is counted again, as in Java."""
        self.bytes: Family[str] = Family(registry.sensor)
        self.compression: Family[str] = Family(registry.sensor)
        """Bytes of each batch as it travels to those that were compressed, by topic."""
        self.retried: Family[str] = Family(registry.sensor)
        self.failed: Family[str] = Family(registry.sensor)

    def leaving(self, topic: str, records: int, size_bytes: int, seconds: float) -> None:
        """A batch has left its queue and goes out."""
        self.sent.of(topic).record(records)
        self.bytes.of(topic).record(size_bytes)
        self.batches.record(size_bytes)
        self.waits.record(seconds)

    def write(self, sheet: Sheet, now: float) -> None:
        """`producer-metrics` and `producer-topic-metrics`."""
        read = self._registry.read
        sheet.of("producer-metrics")
        write_spread(sheet, "batch-size", read(self.batches, now))
        write_spread(sheet, "record-queue-time", read(self.waits, now), 1000)
        sheet.put("records-per-request-avg", read(self.requests, now).average)
        write_counted(sheet, "batch-split", [read(self.splits, now)])
        write_spread(sheet, "produce-throttle-time", read(self.throttled, now))
        ratios = {topic: read(sensor, now) for topic, sensor in self.compression.all().items()}
        sheet.put("compression-rate-avg", together(ratios.values()).average)
        for topic, reading in ratios.items():
            sheet.of("producer-topic-metrics", topic=topic).put("compression-rate", reading.average)
        for name, family in self._families():
            readings = {topic: read(sensor, now) for topic, sensor in family.all().items()}
            write_amount(sheet.of("producer-metrics"), name, together(readings.values()))
            for topic, reading in readings.items():
                write_amount(sheet.of("producer-topic-metrics", topic=topic), name, reading)

    def _families(self) -> tuple[tuple[str, Family[str]], ...]:
        return (
            ("record-send", self.sent),
            ("byte", self.bytes),
            ("record-retry", self.retried),
            ("record-error", self.failed),
        )
