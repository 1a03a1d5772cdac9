"""Totals, and rates over the last windows."""

from __future__ import annotations

import math

import pytest

from ottla.client.metrics import registry as making
from ottla.client.metrics.reading import SensorReading, combine_readings
from ottla.client.metrics.registry import Family, Registry
from tests.plain import plain


@pytest.fixture(autouse=True, params=["compiled", "plain"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sensors as installed and uncompiled."""
    if request.param == "plain":
        monkeypatch.setattr(making, "Sensor", plain("ottla.client.metrics.sensor").Sensor)


def test_a_sensor_reports_the_total_and_the_rate_per_second() -> None:
    registry = Registry(2, 30_000, now=100.0)
    sensor = registry.sensor()
    for value in (10, 30):
        sensor.record(value)
    reading = registry.read(sensor, 104.0)
    assert (reading.event_count, reading.total, reading.average, reading.maximum) == (2, 40, 20, 30)
    assert reading.per_second(reading.recent_total) == 10


def test_values_older_than_the_windows_count_in_the_total_only() -> None:
    registry = Registry(2, 30_000, now=0.0)
    sensor = registry.sensor()
    sensor.record(90)
    for now, value in ((30.0, 7), (60.0, 5)):
        registry.tick(now)
        sensor.record(value)
    registry.tick(90.0)
    reading = registry.read(sensor, 90.0)
    assert reading == SensorReading(3, 102, 2, 12, 7, 60.0)


def test_a_rate_after_a_long_idle_time_is_zero() -> None:
    registry = Registry(2, 30_000, now=0.0)
    sensor = registry.sensor()
    sensor.record(1)
    reading = registry.read(sensor, 1000.0)
    assert (reading.event_count, reading.recent_count, reading.per_second(reading.recent_total)) == (1, 0, 0.0)
    assert math.isnan(reading.average)
    assert math.isnan(reading.maximum)


def test_after_an_idle_time_only_new_values_count_in_the_rate() -> None:
    registry = Registry(2, 30_000, now=0.0)
    sensor = registry.sensor()
    sensor.record(50)
    registry.tick(1000.0)
    sensor.record(2)
    reading = registry.read(sensor, 1001.0)
    assert (reading.recent_count, reading.recent_total, reading.maximum, reading.window_seconds) == (1, 2, 2, 1.0)


def test_a_window_ends_at_its_time_and_not_before() -> None:
    registry = Registry(1, 10_000, now=0.0)
    sensor = registry.sensor()
    sensor.record(8)
    registry.tick(9.9)
    sensor.record(1)
    registry.tick(10.0)
    registry.tick(19.9)
    assert registry.read(sensor, 10.0).recent_total == 9
    assert registry.read(sensor, 19.0).recent_total == 0


def test_a_sensor_that_is_made_late_begins_with_the_window() -> None:
    registry = Registry(2, 30_000, now=0.0)
    registry.tick(30.0)
    family: Family[str] = Family(registry.sensor)
    family.sensor_for("orders").record(6)
    assert family.sensor_for("orders") is family.all()["orders"]
    assert registry.read(family.sensor_for("orders"), 33.0) == SensorReading(1, 6, 1, 6, 6, 3.0)


def test_several_readings_are_combined() -> None:
    one, other = SensorReading(1, 4.0, 1, 4.0, 4.0, 10.0), SensorReading(3, 9.0, 2, 8.0, 6.0, 30.0)
    assert combine_readings([one, other]) == SensorReading(4, 13.0, 3, 12.0, 6.0, 30.0)
    assert math.isnan(combine_readings([]).maximum)
