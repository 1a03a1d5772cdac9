"""Every setting of other Python clients: Ottla accepts it or explains its replacement."""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiokafka
import confluent_kafka.cimpl
import kafka
import pytest

from ottla.client.admin.config import read_admin_settings
from ottla.client.consumer.config import read_consumer_settings
from ottla.client.producer.config import read_producer_settings
from ottla.errors import ConfigError, NotYetError

Read = Callable[[dict[str, Any], dict[str, Any]], Any]
PRODUCER, CONSUMER, ADMIN = read_producer_settings, read_consumer_settings, read_admin_settings
NO_SETTINGS = {"self", "topics"}


def librdkafkas() -> list[str]:
    """The names in the table that the library prints of itself, in C, into a file."""
    library, libc = ctypes.CDLL(confluent_kafka.cimpl.__file__), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        file = ctypes.c_void_p(libc.fopen(bytes(path), b"w"))
        library.rd_kafka_conf_properties_show(file)
        libc.fclose(file)
        return sorted(set(re.findall(r"^([a-z][\w.]+) +\|", path.read_text(encoding="utf-8"), re.MULTILINE)))


def arguments(client: type) -> list[str]:
    return sorted(set(inspect.signature(client).parameters) - NO_SETTINGS)


@cache
def names() -> dict[str, tuple[list[str], tuple[Read, ...]]]:
    """The settings of each client, and the kinds of clients they belong to."""
    return {
        "librdkafka": (librdkafkas(), (PRODUCER, CONSUMER, ADMIN)),
        "aiokafka.AIOKafkaProducer": (arguments(aiokafka.AIOKafkaProducer), (PRODUCER,)),
        "aiokafka.AIOKafkaConsumer": (arguments(aiokafka.AIOKafkaConsumer), (CONSUMER,)),
        "kafka.KafkaProducer": (sorted(kafka.KafkaProducer.DEFAULT_CONFIG), (PRODUCER,)),
        "kafka.KafkaConsumer": (sorted(kafka.KafkaConsumer.DEFAULT_CONFIG), (CONSUMER,)),
        "kafka.KafkaAdminClient": (sorted(kafka.KafkaAdminClient.DEFAULT_CONFIG), (ADMIN,)),
    }


def find_error(read: Read, name: str) -> str:
    """Return the error for a setting; "" if it is accepted or only its value is wrong."""
    try:
        read({"bootstrap.servers": "a"}, {name: "1"})
    except NotYetError:
        return ""
    except ConfigError as error:
        return str(error)
    return ""


def list_suggestions(client: str) -> Iterator[str]:
    """Settings with a suggestion of the closest name, or with none."""
    theirs, ours = names()[client]
    for name in theirs:
        for read in ours:
            sentence = find_error(read, name)
            if re.fullmatch(r"unknown setting '[^']*'(; did you mean .*)?", sentence):
                yield sentence


@pytest.mark.parametrize("client", names())
def test_no_setting_of_another_client_is_answered_by_spelling_similarity_alone(client: str) -> None:
    assert list(list_suggestions(client)) == []


def test_the_tables_of_other_clients_names_are_complete() -> None:
    assert {client: len(theirs) > 25 for client, (theirs, _) in names().items()} == dict.fromkeys(names(), True)
    theirs, _ = names()["librdkafka"]
    assert {"metadata.broker.list", "message.timeout.ms", "group.id", "rebalance_cb"} <= set(theirs)
    assert len(theirs) > 150


@pytest.mark.parametrize(
    ("read", "name", "sentence"),
    [
        (CONSUMER, "acks", "acks is for a producer, and this is a consumer; leave it out"),
        (CONSUMER, "message_timeout_ms", "message_timeout_ms is for a producer, and this is a consumer; leave it out"),
        (PRODUCER, "group.id", "group.id is for a consumer, and this is a producer; leave it out"),
        (ADMIN, "isolation.level", "isolation.level is for a consumer, and this is an admin; leave it out"),
        (PRODUCER, "default.api.timeout.ms", "default.api.timeout.ms is for an admin or a consumer, and this is a"),
    ],
)
def test_an_error_for_a_setting_of_another_ottla_client_names_that_client(read: Read, name: str, sentence: str) -> None:
    assert find_error(read, name).startswith(sentence)
