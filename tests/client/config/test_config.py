from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer
from ottla.client.admin.config import read_admin_settings
from ottla.client.consumer.config import ConsumerConfig, read_consumer_settings
from ottla.client.producer.config import ProducerConfig, read_producer_settings
from ottla.config import options_of
from ottla.errors import ConfigError, NotYetError

AT = {"bootstrap.servers": "127.0.0.1:9092"}


def producer(**settings: Any) -> ProducerConfig:
    return read_producer_settings(AT, settings)


def test_dotted_names_and_keywords_mean_the_same() -> None:
    assert read_producer_settings({**AT, "linger.ms": "7"}, {}) == producer(linger_ms=7)


def test_several_servers_are_separated_by_commas() -> None:
    config = read_consumer_settings({"bootstrap.servers": "a:1, b:2"}, {})
    assert config.bootstrap_servers == ("a:1", "b:2")


def test_bootstrap_servers_must_be_given() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is required"):
        read_admin_settings(None, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("linger.ms", 5),
        ("batch.size", 16_384),
        ("buffer.memory", 33_554_432),
        ("max.block.ms", 60_000),
        ("max.request.size", 1_048_576),
        ("delivery.timeout.ms", 120_000),
        ("request.timeout.ms", 30_000),
        ("max.in.flight.requests.per.connection", 5),
        ("acks", "all"),
        ("compression.type", "none"),
        ("retries", 2_147_483_647),
    ],
)
def test_producer_defaults_are_kafkas(name: str, value: object) -> None:
    assert {option.name: option.default for option in options_of(ProducerConfig)}[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fetch.min.bytes", 1),
        ("fetch.max.wait.ms", 500),
        ("fetch.max.bytes", 52_428_800),
        ("max.partition.fetch.bytes", 1_048_576),
        ("max.poll.records", 500),
        ("auto.offset.reset", "latest"),
        ("check.crcs", True),
        ("default.api.timeout.ms", 60_000),
    ],
)
def test_consumer_defaults_are_kafkas(name: str, value: object) -> None:
    assert {option.name: option.default for option in options_of(ConsumerConfig)}[name] == value


@pytest.mark.parametrize("cls", [ProducerConfig, ConsumerConfig])
def test_every_setting_is_explained(cls: type[Any]) -> None:
    assert [option.name for option in options_of(cls) if not option.doc] == []


def test_a_misspelt_setting_is_an_error_with_the_closest_name() -> None:
    with pytest.raises(ConfigError, match=r"'linger\.mss'; did you mean 'linger\.ms'"):
        read_producer_settings({**AT, "linger.mss": 1}, {})


@pytest.mark.parametrize(("acks", "number"), [("all", -1), (-1, -1), ("-1", -1), (1, 1), ("0", 0)])
def test_acks_accepts_every_spelling(acks: object, number: int) -> None:
    assert producer(acks=acks).acks_number == number


def test_acks_of_two_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="acks = 2: must be one of all, 0, 1"):
        producer(acks=2)


@pytest.mark.behaviour("P4")
def test_the_delivery_timeout_must_cover_linger_and_one_request() -> None:
    with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms = 1000: must be at least .* = 30005"):
        producer(delivery_timeout_ms=1000)


@pytest.mark.behaviour("P4")
def test_a_delivery_timeout_that_just_covers_them_is_accepted() -> None:
    assert producer(delivery_timeout_ms=30_005).delivery_timeout_ms == 30_005


def test_the_compression_level_applies_to_the_chosen_codec() -> None:
    assert producer(compression_type="zstd", compression_zstd_level=9, compression_gzip_level=1).compression_level == 9
    assert producer(compression_type="snappy").compression_level is None


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("transaction.two.phase.commit.enable", True, "only the producer itself"),
        ("sasl.login.class", "org.example.Login", "no class is loaded"),
        ("ssl.engine.factory.class", "org.example.Engine", "no class is loaded"),
    ],
)
def test_settings_that_the_producer_lacks_are_rejected_with_an_explanation(
    name: str, value: object, remedy: str
) -> None:
    with pytest.raises(NotYetError, match=f"{name}.*not supported yet.*{remedy}"):
        read_producer_settings({**AT, name: value}, {})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"session.timeout.ms": 9000}, "session.timeout.ms: not with group.protocol=CONSUMER"),
        ({"heartbeat_interval_ms": 50}, "heartbeat.interval.ms: not with group.protocol=CONSUMER"),
        (
            {"partition.assignment.strategy": "range", "session.timeout.ms": 9000},
            "partition.assignment.strategy, session.timeout.ms: not with group.protocol=CONSUMER",
        ),
    ],
)
def test_settings_of_the_coordinator_are_rejected_with_the_consumer_protocol(
    settings: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{said}; omit it"):
        read_consumer_settings({**AT, "group.protocol": "consumer", **settings}, {})
    with pytest.raises(ConfigError, match=f"^{said}; omit it"):
        read_consumer_settings(AT, {"group_protocol": "CONSUMER", **as_keywords(settings)})


def as_keywords(settings: dict[str, object]) -> dict[str, object]:
    return {name.replace(".", "_"): value for name, value in settings.items()}


def test_a_remote_assignor_needs_the_consumer_protocol() -> None:
    with pytest.raises(ConfigError, match=r"^group.remote.assignor: not with group.protocol=CLASSIC; .*consumer"):
        read_consumer_settings({**AT, "group.remote.assignor": "range"}, {})
    newer = read_consumer_settings({**AT, "group.protocol": "consumer", "group.remote.assignor": "range"}, {})
    assert newer.group_remote_assignor == "range"
    with pytest.raises(ConfigError, match=r"group.remote.assignor is empty"):
        read_consumer_settings({**AT, "group.protocol": "consumer", "group.remote.assignor": ""}, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [("security.protocol", "PLAINTEXT"), ("group.protocol", "CLASSIC"), ("isolation.level", "read_uncommitted")],
)
def test_settings_that_match_the_fixed_behaviour_are_accepted(name: str, value: object) -> None:
    read_consumer_settings({**AT, name: value}, {})


def test_idempotence_can_be_disabled_explicitly() -> None:
    assert producer(enable_idempotence="false").enable_idempotence is False


CONFLICTS = pytest.mark.parametrize(
    ("name", "value"), [("acks", 1), ("acks", "0"), ("retries", 0), ("max.in.flight.requests.per.connection", 6)]
)


@CONFLICTS
@pytest.mark.behaviour("P6")
@pytest.mark.parametrize("wish", [{"enable.idempotence": True}, {"transactional.id": "t"}])
def test_settings_that_conflict_with_explicit_idempotence_are_an_error(
    name: str, value: object, wish: dict[str, object]
) -> None:
    with pytest.raises(ConfigError, match=f"{name} = {value}: an idempotent producer .*enable.idempotence = false"):
        read_producer_settings({**AT, name: value, **wish}, {})


@CONFLICTS
@pytest.mark.behaviour("P6")
def test_settings_that_conflict_with_default_idempotence_disable_it_with_a_warning(
    name: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_producer_settings({**AT, name: value}, {}).enable_idempotence is False
    assert f"idempotence is disabled, retries may duplicate or reorder records: {name} = {value}" in caplog.text


@pytest.mark.behaviour("P6")
def test_a_producer_is_idempotent_by_default() -> None:
    assert producer().enable_idempotence is True
    assert producer(acks=-1, retries=1).enable_idempotence is True


def test_a_transactional_id_needs_idempotence_and_a_name() -> None:
    with pytest.raises(ConfigError, match=r"transactional\.id = 't' needs enable\.idempotence = true"):
        producer(transactional_id="t", enable_idempotence=False)
    with pytest.raises(ConfigError, match="must not be empty"):
        producer(transactional_id="")


@pytest.mark.parametrize("client", [Producer, Consumer, Admin])
def test_an_address_in_place_of_the_settings_is_rejected(client: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigError, match=r"^settings = '127\.0\.0\.1:9092': must be a dict"):
        client("127.0.0.1:9092")
