"""Error codes, their names and the retriable ones, compared with two foreign tables."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import kafka.errors
import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from ottla.errors import (
    CLASSES,
    NOT_ALLOWED,
    RETRIABLE,
    BufferExhaustedError,
    CorruptRecordError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    OttlaError,
    ProtocolError,
    UnknownTopicOrPartitionError,
    error_for,
    name_of,
    topic_asked,
)

LATER_THAN_KIO = {134, 135, 136}
"""Codes of Kafka 4.3 that are missing in the table of kio 0.6."""


def kafka_python_classes() -> dict[int, Any]:
    """Return kafka-python's exception class for each code that it knows."""
    found: list[Any] = [cls for cls in vars(kafka.errors).values() if inspect.isclass(cls)]
    return {cls.errno: cls for cls in found if isinstance(getattr(cls, "errno", None), int)}


def test_every_code_of_kafka_exists_and_no_other() -> None:
    assert {code.value for code in ErrorCode} - LATER_THAN_KIO == {code.value for code in KioErrorCode}
    assert sorted(ErrorCode) == list(range(-1, 137))


@pytest.mark.parametrize("theirs", list(KioErrorCode), ids=lambda code: code.name)
def test_a_code_has_kafkas_name_and_is_retriable_like_kafkas(theirs: KioErrorCode) -> None:
    ours = ErrorCode(theirs.value)
    assert ours.name == theirs.name.upper()
    assert (ours in RETRIABLE) == theirs.retriable


def test_kafka_python_retries_what_we_retry() -> None:
    known = kafka_python_classes()
    # kafka-python does not retry a damaged batch; the Java client and ours do.
    differing = {code for code, cls in known.items() if code in RETRIABLE and not getattr(cls, "retriable", False)}
    assert differing <= {ErrorCode.CORRUPT_MESSAGE}
    assert {code for code, cls in known.items() if cls.retriable and code >= 0} <= RETRIABLE


def test_an_error_contains_its_code_and_the_brokers_message() -> None:
    assert str(error_for(40, "retention.ms = x")) == "INVALID_CONFIG: retention.ms = x"
    assert str(error_for(40)) == "INVALID_CONFIG"


def test_a_code_from_the_future_keeps_its_number() -> None:
    assert name_of(9999) == "ERROR_9999"
    assert str(error_for(9999)) == "ERROR_9999"
    assert not error_for(9999).retriable


@pytest.mark.parametrize(("code", "cls"), CLASSES.items(), ids=lambda value: getattr(value, "name", ""))
def test_a_code_that_programs_catch_has_a_class_of_its_own(code: int, cls: type[KafkaError]) -> None:
    error = error_for(code)
    assert type(error) is cls
    assert error.code == code


def test_an_error_states_if_it_is_retriable() -> None:
    assert error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER).retriable
    assert not error_for(ErrorCode.MESSAGE_TOO_LARGE).retriable


def test_everything_raised_on_purpose_has_one_root() -> None:
    assert issubclass(KafkaError, OttlaError)
    assert issubclass(CorruptRecordError, ProtocolError)
    assert issubclass(BufferExhaustedError, KafkaTimeoutError)
    assert issubclass(KafkaTimeoutError, TimeoutError), "a program that catches Python's own timeouts catches ours"


def test_an_error_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(UnknownTopicOrPartitionError(3, "flights-7")))
    assert isinstance(copy, UnknownTopicOrPartitionError)
    assert (copy.code, str(copy)) == (3, "UNKNOWN_TOPIC_OR_PARTITION: flights-7")


@pytest.mark.parametrize("code", sorted(NOT_ALLOWED))
@pytest.mark.parametrize("message", ["topic 't'", None])
def test_an_authorization_error_names_the_remedy_once(code: int, message: str | None) -> None:
    error = error_for(code, message)
    again = str(error_for(code, error.message))
    assert str(error).startswith(f"{ErrorCode(code).name}: {message or 'refused'}; no rule (ACL) allows")
    assert again == str(error)


def test_an_authorization_error_for_a_topic_names_the_operation_and_others_only_the_topic() -> None:
    reported = topic_asked(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t")
    assert reported == "DESCRIBE of topic 't' (a rule for READ or WRITE is sufficient too)"
    assert topic_asked(ErrorCode.LEADER_NOT_AVAILABLE, "t") == "topic 't'"
    assert topic_asked(ErrorCode.INVALID_TOPIC_EXCEPTION, "a b") == (
        "topic 'a b' (a name has at most 249 letters, digits, '.', '_' and '-')"
    )
