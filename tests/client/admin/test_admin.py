from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from ottla import Admin, NewTopic, Producer, TopicPartition
from ottla.errors import (
    ErrorCode,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    WakeupError,
)
from ottla.model import EARLIEST, LATEST, MAX_TIMESTAMP
from tests.client.conftest import NewTopicName, eventually, fresh_name


def test_a_created_topic_can_be_described(admin: Admin) -> None:
    name = fresh_name()
    admin.create_topics([NewTopic(name, 3, 1)])
    found = admin.describe_topics([name])[name]
    assert (found.name, found.internal) == (name, False)
    assert found.topic_id.int != 0
    assert [part.partition for part in found.partitions] == [0, 1, 2]
    assert all(part.leader >= 0 for part in found.partitions)


def test_topics_are_listed_by_name(admin: Admin, new_topic: NewTopicName) -> None:
    name = new_topic()
    found = admin.list_topics()
    assert name in found
    assert list(found) == sorted(found)


def test_a_deleted_topic_is_not_listed(admin: Admin, topic: str) -> None:
    admin.delete_topics([topic])
    eventually(lambda: topic not in admin.list_topics())
    with pytest.raises(UnknownTopicOrPartitionError, match=f"there is no topic '{topic}'"):
        admin.describe_topics([topic])


def test_a_topic_that_exists_is_not_created_again(admin: Admin, topic: str) -> None:
    with pytest.raises(TopicAlreadyExistsError, match=topic):
        admin.create_topics([NewTopic(topic)])


def test_a_missing_topic_cannot_be_deleted(admin: Admin) -> None:
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        admin.delete_topics(["there-is-no-such-topic"])
    assert caught.value.message == "there is no topic 'there-is-no-such-topic'"
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        admin.delete_topics([f"no-{n}" for n in range(8)])
    message = "; ".join(f"there is no topic 'no-{n}'" for n in range(5))
    assert caught.value.message == f"{message} and 3 more"


def test_each_topic_is_created_independently_and_every_error_is_reported(admin: Admin, topic: str) -> None:
    name = fresh_name()
    with pytest.raises(TopicAlreadyExistsError) as caught:
        admin.create_topics([NewTopic(topic), NewTopic("not a name"), NewTopic(name, 1, 1)])
    assert topic in str(caught.value)
    assert "INVALID_TOPIC_EXCEPTION" in str(caught.value)
    eventually(lambda: name in admin.list_topics())


def test_a_bad_name_is_refused(admin: Admin) -> None:
    with pytest.raises(InvalidTopicError):
        admin.create_topics([NewTopic("a b")])


def test_a_replication_factor_above_the_number_of_brokers_is_rejected(admin: Admin) -> None:
    with pytest.raises(KafkaError) as caught:
        admin.create_topics([NewTopic("copied", 1, 3)])
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_validate_only_creates_nothing(admin: Admin) -> None:
    admin.create_topics([NewTopic("only-checked", 1, 1)], validate_only=True)
    assert "only-checked" not in admin.list_topics()


def test_offsets_are_looked_up_by_time(servers: str, admin: Admin, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with Producer(bootstrap_servers=servers) as producer:
        for timestamp in (1000, 3000, 2000):
            producer.send(topic, b"v", timestamp=timestamp)
    assert admin.list_offsets({tp: EARLIEST})[tp].offset == 0
    assert admin.list_offsets({tp: LATEST})[tp].offset == 3
    assert admin.list_offsets({tp: 2500})[tp][:2] == (1, 3000)
    assert admin.list_offsets({tp: MAX_TIMESTAMP})[tp][:2] == (1, 3000)
    assert admin.list_offsets({tp: 9999})[tp].offset == -1


def test_all_topics_are_described_by_one_request(admin: Admin, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, requested = admin._calls.topics, []
    fetch = calls.fetch

    def counted(names: list[str] | None, timeout: float | None) -> Any:
        requested.append(names)
        return fetch(names, timeout)

    monkeypatch.setattr(calls, "fetch", counted)
    found = admin.describe_topics()
    assert requested == [None]
    assert found[topic] == admin.describe_topics([topic])[topic]


def test_describing_a_topic_does_not_create_it(admin: Admin) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.describe_topics(["never-made"])
    assert "never-made" not in admin.list_topics()


def test_a_request_that_fails_with_a_retriable_error_is_retried(
    admin: Admin, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, requested = admin._driver.run_round, []

    def refuse_once(query: Any, keys: list[Any], deadline: Any) -> dict[Any, Any]:
        requested.append(keys)
        refused = KafkaError(ErrorCode.NOT_CONTROLLER)
        return {topic: refused} if len(requested) == 1 else ask(query, keys, deadline)

    monkeypatch.setattr(admin._driver, "run_round", refuse_once)
    admin.delete_topics([topic])
    assert requested == [[topic], [topic]]


def test_a_request_that_keeps_failing_raises_its_last_error(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = KafkaError(ErrorCode.NOT_CONTROLLER, "elsewhere")
    monkeypatch.setattr(admin._driver, "run_round", lambda query, keys, deadline: dict.fromkeys(keys, elsewhere))
    with pytest.raises(KafkaError, match="NOT_CONTROLLER: elsewhere"):
        admin.delete_topics(["t"], timeout=0.3)


def test_a_timeout_names_the_error_that_the_broker_returned_before(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk takes nothing")])

    def round_after_round(query: Any, keys: list[str], deadline: Any) -> dict[str, KafkaError]:
        for error in answers:
            return dict.fromkeys(keys, error)
        raise admin._driver.timeout_error(deadline)

    monkeypatch.setattr(admin._driver, "run_round", round_after_round)
    with pytest.raises(KafkaError, match="the disk takes nothing"):
        admin.delete_topics(["t"], timeout=5)


def test_threads_take_turns(servers: str, topic: str) -> None:
    found: list[bool] = []
    with Admin(bootstrap_servers=servers) as client:
        threads = [threading.Thread(target=lambda: found.append(topic in client.list_topics())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert found == [True] * 8


def test_closing_ends_a_call_of_another_thread() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Admin(bootstrap_servers=f"127.0.0.1:{silent.getsockname()[1]}")
        errors: list[Exception] = []

        def run_query() -> None:
            try:
                client.list_topics()
            except WakeupError as error:
                errors.append(error)

        thread = threading.Thread(target=run_query)
        thread.start()
        silent.accept()[0].close()
        client.close(10)
        thread.join(10)
    assert len(errors) == 1


def test_a_closed_admin_raises_on_every_call(servers: str) -> None:
    client = Admin(bootstrap_servers=servers)
    client.close()
    client.close()
    with pytest.raises(IllegalStateError, match="the admin client is closed"):
        client.list_topics()
