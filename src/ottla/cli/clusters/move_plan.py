"""Plans of moves as people write them: `--to 2,3`, and the JSON of kafka-reassign-partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ottla.cli.options import senseless
from ottla.model import TopicPartition

ANYWHERE = "any"
"""A directory that is the broker's choice, in Kafka's plans."""
SHAPE = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}'


def brokers_of(text: str) -> tuple[int, ...]:
    """`2,3` as numbers of brokers."""
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isdecimal() for number in numbers) or len(set(numbers)) < len(numbers):
        raise senseless(f"--to {text!r} must be numbers of brokers, each once, with commas between: 2,3")
    return tuple(map(int, numbers))


class Move(NamedTuple):
    """What shall be of a partition."""

    replicas: tuple[int, ...]
    directories: tuple[str, ...]
    """Of each replica, `ANYWHERE` where it does not matter."""


def moves_of_file(place: str) -> dict[TopicPartition, Move]:
    """What a plan of Kafka's tool asks for."""
    option = f"--reassignment-json-file {place}"
    try:
        plan = json.loads(Path(place).read_text(encoding="utf-8"))
        moves = dict(move_of(each) for each in plan["partitions"])
    except OSError as error:
        raise senseless(f"{option}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise senseless(f"{option} is no plan ({error}): it must be like {SHAPE}") from None
    if len(moves) < len(plan["partitions"]):
        raise senseless(f"{option} has a partition twice; name it once")
    return moves


def move_of(entry: Mapping[str, Any]) -> tuple[TopicPartition, Move]:
    """One partition with the brokers that shall have it, and the directories in which they shall."""
    topic, partition, replicas = entry["topic"], entry["partition"], entry["replicas"]
    numbers = [partition, *replicas]
    if not isinstance(topic, str) or not replicas or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError("a topic is text, a partition and brokers are numbers")
    directories = tuple(entry.get("log_dirs", ())) or (ANYWHERE,) * len(replicas)
    if len(directories) != len(replicas) or not all(isinstance(each, str) and each for each in directories):
        raise ValueError(f'log_dirs are one directory for each of the replicas, or "{ANYWHERE}"')
    return TopicPartition(topic, partition), Move(tuple(replicas), directories)
