"""Settings of clients in a pipeline file: each client receives its own, and an unknown name is reported with its place."""

from __future__ import annotations

import pytest

from ottla.client.config.setting_owners import ClientKind
from ottla.pipelines.client_settings import find_mistake, settings_for
from tests.pipelines.file.files import mistakes, pipeline

ALL = {"default.api.timeout.ms": 1, "linger.ms": 2, "fetch.min.bytes": 3, "ssl.ca.location": "ca.pem", "linger.mss": 4}


@pytest.mark.parametrize(
    ("face", "left_out"),
    [
        ("admin", {"linger.ms", "fetch.min.bytes"}),
        ("consumer", {"linger.ms"}),
        ("producer", {"default.api.timeout.ms", "fetch.min.bytes"}),
    ],
)
def test_a_client_receives_the_settings_that_it_knows_and_those_that_no_client_knows(
    face: ClientKind, left_out: set[str]
) -> None:
    assert settings_for(face, ALL) == {name: value for name, value in ALL.items() if name not in left_out}


@pytest.mark.parametrize("name", ["linger.ms", "fetch_min_bytes", "default.api.timeout.ms", "sasl.mechanisms"])
def test_facts_known_to_any_client_may_be_shown_to_all(name: str) -> None:
    assert find_mistake(name) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("linger.mss", "unknown setting 'linger.mss'; did you mean 'linger.ms'?"),
        ("socket.timeout.ms", "unknown setting 'socket.timeout.ms': it is called 'request.timeout.ms' here"),
    ],
)
def test_a_name_that_no_client_knows_is_refused_in_its_line(name: str, message: str) -> None:
    text = "settings: {kafka: {retry.backoff.ms: 5,\n " + name + ": 1}}\n" + pipeline()
    assert mistakes(text) == [f"p.yaml:2:2: {message}"]


def test_a_source_and_a_sink_have_one_client_each() -> None:
    text = pipeline(
        source="{type: topic, topic: t, kafka: {linger.ms: 1}}",
        sink="{type: topic, topic: t, kafka: {fetch.min.bytes: 1}}",
    )
    assert mistakes("settings: {bootstrap.servers: b}\n" + text) == [
        "p.yaml:4:43: linger.ms is for a producer, and this is a consumer; leave it out",
        "p.yaml:6:41: fetch.min.bytes is for a consumer, and this is a producer; leave it out",
    ]
