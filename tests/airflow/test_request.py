"""Requests of the sensor for Airflow. The sensor itself is tested in `interop/test_airflow.py`."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from ottla import Broker, Consumer, Producer, TopicPartition
from ottla.airflow.request import TopicRequest, check_request, record_to_json
from ottla.errors import ConfigError

REQUEST: dict[str, Any] = {
    "topics": "orders",
    "config": {"bootstrap_servers": "h:9092"},
    "start": "latest",
    "max_records": 10,
    "encoding": "utf-8",
}


def test_a_request_has_a_list_of_topics_and_names_with_dots() -> None:
    expected = TopicRequest(["orders"], {"bootstrap.servers": "h:9092"}, "latest", 10, "utf-8")
    assert check_request(**REQUEST) == expected
    assert check_request(**expected._asdict()) == expected


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"topics": []}, "topics is empty: name a topic"),
        ({"start": "now"}, "invalid value 'now' for start: expected earliest or latest"),
        ({"encoding": "ascii"}, "invalid value 'ascii' for encoding: expected utf-8 or base64"),
        ({"max_records": 0}, "invalid value 0 for max_records: expected a number from 1 to 10000"),
        ({"config": {"value_deserializer": bytes}}, "config has a value that Airflow cannot store"),
    ],
)
def test_a_wrong_value_is_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_request(**{**REQUEST, **wrong})


def test_a_record_is_values_of_json() -> None:
    with Broker() as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("for-airflow", b"\xfftea", timestamp=5, headers=[("h", b"1")]).result(10)
        with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("for-airflow", 0)])
            (record,) = consumer.poll(10)
    expected = {
        "topic": "for-airflow",
        "partition": 0,
        "offset": 0,
        "timestamp": 5,
        "key": None,
        "value": "\ufffdtea",
        "headers": [["h", "1"]],
    }
    assert record_to_json(record, "utf-8") == expected
    assert record_to_json(record, "base64") == {**expected, "value": "/3RlYQ==", "headers": [["h", "MQ=="]]}


def test_the_text_of_a_trigger_has_no_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("airflow", "airflow.triggers", "airflow.triggers.base"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["airflow.triggers.base"], "BaseTrigger", object, raising=False)
    monkeypatch.setattr(sys.modules["airflow.triggers.base"], "TriggerEvent", dict, raising=False)
    monkeypatch.delitem(sys.modules, "ottla.airflow.trigger", raising=False)
    trigger = import_module("ottla.airflow.trigger").TopicTrigger(["orders"], {"sasl.password": "s3cret"})
    monkeypatch.delitem(sys.modules, "ottla.airflow.trigger")

    assert repr(trigger) == "TopicTrigger(orders)"
