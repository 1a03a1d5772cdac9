"""Kafka Connect's checks of settings, and what is refused, without a manager."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.errors import ConfigError
from ottla.pipelines.manager.rest.answers import RestError
from ottla.pipelines.manager.rest.api import RestRequest
from ottla.pipelines.manager.rest.plugins import config, plugins, validate
from ottla.pipelines.manager.rest.server import bind_server


def asked(plugin: str = "", body: bytes = b"", **query: str) -> Any:
    manager: Any = None
    lists = {name: [value] for name, value in query.items()}
    return RestRequest(manager, manager, {"plugin": plugin}, lists, body, "", "")


def answer(plugin: str, **settings: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(validate(asked(plugin, json.dumps(settings).encode())).body)
    return found


def errors(found: dict[str, Any]) -> dict[str, list[str]]:
    return {one["value"]["name"]: one["value"]["errors"] for one in found["configs"] if one["value"]["errors"]}


def test_all_that_a_file_can_name_is_a_plugin() -> None:
    shown = json.loads(plugins(asked(connectorsOnly="false")).body)
    assert {"ottla.source.topic", "ottla.sink.delta", "org.apache.kafka.connect.transforms.MaskField"} <= {
        one["class"] for one in shown
    }
    assert {one["type"] for one in json.loads(plugins(asked()).body)} == {"source", "sink"}


def test_settings_are_checked_one_by_one_as_text() -> None:
    good = answer("ottla.source.rate", name="r", rowsPerSecond="5", **{"connector.class": "x"})
    assert (good["name"], good["error_count"]) == ("ottla.source.rate", 0)
    bad = answer("ottla.source.rate", rowsPerSecond="0", row="5")
    assert errors(bad) == {
        "rowsPerSecond": ["rowsPerSecond = 0: must be at least 1"],
        "row": ["unknown key 'row'; the keys are type, rowsPerSecond"],
    }
    missing = answer("MaskField$Value")
    assert errors(missing) == {"fields": ["the file needs the key 'fields'"]}


def test_the_purpose_of_a_setting_is_reported() -> None:
    (rows,) = json.loads(config(asked("rate")).body)
    assert (rows["name"], rows["type"], rows["default_value"]) == ("rowsPerSecond", "LONG", "1")
    assert rows["documentation"] == "Rows per second."


@pytest.mark.parametrize(
    ("plugin", "message"), [("ottla.source.topik", "did you mean"), ("topic", "ottla.source.topic or")]
)
def test_a_plugin_that_is_not_there_or_not_the_only_one_is_reported(plugin: str, message: str) -> None:
    with pytest.raises(RestError, match=message):
        config(asked(plugin))


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'"x"'])
def test_a_body_that_is_not_an_object_is_refused(body: bytes) -> None:
    with pytest.raises(RestError, match="an object of JSON"):
        validate(asked("rate", body))


@pytest.mark.parametrize("listen", ["8083", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "256.0.0.1:0"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"listen = |cannot listen on 256\.0\.0\.1:0: "):
        bind_server(listen, lambda *_: RestError(404, "").to_response())
