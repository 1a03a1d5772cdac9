"""The settings of a share consumer, and the public class before it has connected."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import AcknowledgeType, Consumer, ShareConsumer
from ottla.client.share.config import UNSUPPORTED, read_share_consumer_settings
from ottla.errors import ConfigError, IllegalStateError, InvalidGroupIdError

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "workers"}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_a_setting_that_share_groups_do_not_have_is_an_error_with_its_remedy(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: not supported by a share consumer; "):
        read_share_consumer_settings({**NOWHERE, name: "x"}, {})


def test_a_keyword_is_checked_too() -> None:
    with pytest.raises(ConfigError, match=r"enable\.auto\.commit: .* set share\.acknowledgement\.mode"):
        read_share_consumer_settings(NOWHERE, {"enable_auto_commit": False})


def test_a_setting_of_a_share_consumer_is_named_to_a_consumer() -> None:
    with pytest.raises(ConfigError, match=r"share\.acquire\.mode is for a share consumer, and this is a consumer"):
        Consumer({"bootstrap.servers": "127.0.0.1:1", "share.acquire.mode": "record_limit"})


@pytest.mark.parametrize("settings", [{"share.acknowledgement.mode": "both"}, {"share.acquire.mode": "all"}])
def test_modes_are_checked(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        read_share_consumer_settings(NOWHERE | settings, {})


def test_a_share_consumer_needs_a_group() -> None:
    with pytest.raises(InvalidGroupIdError, match=r"group\.id is not set"):
        ShareConsumer({"bootstrap.servers": "127.0.0.1:1"})


@pytest.fixture
def consumer() -> Any:
    with ShareConsumer({**NOWHERE, "share.acknowledgement.mode": "explicit"}) as made:
        yield made


def test_poll_needs_a_subscription(consumer: ShareConsumer) -> None:
    with pytest.raises(IllegalStateError, match="not subscribed"):
        consumer.poll(0)


def test_a_commit_without_records_has_no_results_and_sends_nothing(consumer: ShareConsumer) -> None:
    assert consumer.commit() == {}
    assert consumer.acquisition_lock_timeout_ms() is None


def test_only_held_records_can_be_acknowledged(consumer: ShareConsumer) -> None:
    with pytest.raises(IllegalStateError, match="cannot acknowledge offset 5 of flights-0"):
        consumer.acknowledge("flights", 0, 5, AcknowledgeType.ACCEPT)


@pytest.mark.parametrize(
    "arguments", [("flights",), ("flights", 0), ("flights", 0, 5, AcknowledgeType.ACCEPT, 1), ("flights", 0, 5, 1)]
)
def test_wrong_arguments_of_acknowledge_are_type_errors(consumer: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        consumer.acknowledge(*arguments)


def test_implicit_acknowledgement_refuses_acknowledge() -> None:
    with (
        ShareConsumer(NOWHERE) as consumer,
        pytest.raises(IllegalStateError, match=r"needs share\.acknowledgement\.mode=explicit"),
    ):
        consumer.acknowledge("flights", 0, 5)


def test_a_closed_consumer_says_so() -> None:
    consumer = ShareConsumer(NOWHERE)
    consumer.close()
    consumer.close()

    with pytest.raises(IllegalStateError, match="the consumer is closed"):
        consumer.subscribe(["flights"])


def test_names_of_other_libraries_are_explained(consumer: Any) -> None:
    with pytest.raises(AttributeError, match=r"call commit\(\)"):
        consumer.commit_sync()


def test_metrics_have_the_groups_of_the_java_client(consumer: ShareConsumer) -> None:
    groups = {name.group for name in consumer.metrics()}

    assert {
        "consumer-share-metrics",
        "consumer-share-fetch-manager-metrics",
        "consumer-share-coordinator-metrics",
    } <= groups
    assert all(name.description for name in consumer.metrics())
