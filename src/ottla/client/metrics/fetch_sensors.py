"""What a consumer measures of its fetches, its polls and its commits, told by the user's thread."""

from __future__ import annotations

import math

from ottla.client.metrics.client_metrics import Sheet
from ottla.client.metrics.network_sensors import write_amount, write_counted, write_spread
from ottla.client.metrics.reading import together
from ottla.client.metrics.registry import Family, Registry

MANAGER = "consumer-fetch-manager-metrics"


class FetchSensors:
    """Recorded once for an answer, or for the part of one that is handed out at a time."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.sizes = registry.sensor()
        """Bytes of records in each answer."""
        self.latency = registry.sensor()
        """Seconds from asking to the answer, in which the broker may have waited for records."""
        self.throttled = registry.sensor()
        """Milliseconds that each answer says are to be waited."""
        self.filled = registry.sensor()
        """Answers that had records."""
        self.records: Family[str] = Family(registry.sensor)
        """Records of each part that is handed out, by topic."""
        self.bytes: Family[str] = Family(registry.sensor)
        """Bytes of each partition's share of an answer, once it is handed out."""

    def write(self, sheet: Sheet, now: float) -> None:
        """What was fetched, and by topic what was consumed."""
        read, sizes, latency = self._registry.read, self.sizes, self.latency
        write_counted(sheet.of(MANAGER), "fetch", [read(latency, now)])
        write_spread(sheet, "fetch-latency", read(latency, now), 1000)
        write_spread(sheet, "fetch-size", read(sizes, now))
        write_spread(sheet, "fetch-throttle-time", read(self.throttled, now))
        handed_out = together(read(sensor, now) for sensor in self.records.all().values())
        filled = read(self.filled, now).lately
        sheet.put("records-per-request-avg", handed_out.amount / filled if filled else math.nan)
        for name, family in (("records-consumed", self.records), ("bytes-consumed", self.bytes)):
            readings = {topic: read(sensor, now) for topic, sensor in family.all().items()}
            write_amount(sheet.of(MANAGER), name, together(readings.values()))
            for topic, reading in readings.items():
                write_amount(sheet.of(MANAGER, topic=topic), name, reading)


class PollSensors:
    """Recorded once for a call of `poll`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._gaps = registry.sensor()
        """Seconds from one call's beginning to the next one's."""
        self._inside = registry.sensor()
        """Seconds within calls."""
        self._begun: float | None = None
        """When the last call began."""

    def begin(self, now: float) -> None:
        if self._begun is not None:
            self._gaps.record(now - self._begun)
        self._begun = now

    def end(self, now: float) -> None:
        if self._begun is not None:
            self._inside.record(now - self._begun)

    def write(self, sheet: Sheet, now: float) -> None:
        """Of `consumer-metrics`."""
        inside, gaps = self._registry.read(self._inside, now), self._registry.read(self._gaps, now)
        write_spread(sheet.of("consumer-metrics"), "time-between-poll", gaps, 1000)
        sheet.put("poll-idle-ratio-avg", min(1.0, inside.per_second(inside.amount)))
        sheet.put("last-poll-seconds-ago", math.nan if self._begun is None else max(0.0, now - self._begun))
