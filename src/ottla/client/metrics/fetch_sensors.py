"""Sensors of fetches, polls and commits, recorded by the user's thread."""

from __future__ import annotations

import math

from ottla.client.metrics.client_metrics import MetricsBuilder
from ottla.client.metrics.network_sensors import write_amount, write_counted, write_spread
from ottla.client.metrics.reading import combine_readings
from ottla.client.metrics.registry import Family, Registry

MANAGER = "consumer-fetch-manager-metrics"


class FetchSensors:
    """Fetch metrics, recorded once per response or per returned part of one."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.sizes = registry.sensor()
        """Bytes of records in each response."""
        self.latency = registry.sensor()
        """Seconds from the request to the response, including the broker's wait for records."""
        self.throttled = registry.sensor()
        """Throttle time in milliseconds of each response."""
        self.filled = registry.sensor()
        """Responses with records."""
        self.records: Family[str] = Family(registry.sensor)
        """Records of each returned part, by topic."""
        self.bytes: Family[str] = Family(registry.sensor)
        """Bytes of each partition's data in a response, recorded when it is returned to the user."""

    def write(self, builder: MetricsBuilder, now: float, group: str = MANAGER) -> None:
        """Write the fetch metrics, and the consumed records and bytes by topic."""
        read, sizes, latency = self._registry.read, self.sizes, self.latency
        write_counted(builder.select_group(group), "fetch", [read(latency, now)])
        write_spread(builder, "fetch-latency", read(latency, now), 1000)
        write_spread(builder, "fetch-size", read(sizes, now))
        write_spread(builder, "fetch-throttle-time", read(self.throttled, now))
        returned = combine_readings(read(sensor, now) for sensor in self.records.all().values())
        filled = read(self.filled, now).recent_count
        builder.put("records-per-request-avg", returned.recent_total / filled if filled else math.nan)
        for name, family in (("records-consumed", self.records), ("bytes-consumed", self.bytes)):
            readings = {topic: read(sensor, now) for topic, sensor in family.all().items()}
            write_amount(builder.select_group(group), name, combine_readings(readings.values()))
            for topic, reading in readings.items():
                write_amount(builder.select_group(group, topic=topic), name, reading)


class PollSensors:
    """Poll metrics, recorded once per call of `poll`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._intervals = registry.sensor()
        """Seconds between the starts of consecutive calls."""
        self._durations = registry.sensor()
        """Seconds within calls."""
        self._start: float | None = None
        """The start of the last call."""

    def start_poll(self, now: float) -> None:
        if self._start is not None:
            self._intervals.record(now - self._start)
        self._start = now

    def end_poll(self, now: float) -> None:
        if self._start is not None:
            self._durations.record(now - self._start)

    def write(self, builder: MetricsBuilder, now: float, group: str = "consumer-metrics") -> None:
        """Write the poll metrics."""
        durations, intervals = self._registry.read(self._durations, now), self._registry.read(self._intervals, now)
        write_spread(builder.select_group(group), "time-between-poll", intervals, 1000)
        builder.put("poll-idle-ratio-avg", min(1.0, durations.per_second(durations.recent_total)))
        builder.put("last-poll-seconds-ago", math.nan if self._start is None else max(0.0, now - self._start))
