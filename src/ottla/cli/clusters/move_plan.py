"""Parse plans of moves: `--to 2,3`, and the JSON of kafka-reassign-partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ottla.cli.options import usage_error
from ottla.model import TopicPartition

ANYWHERE = "any"
"""The directory name in Kafka's plans that leaves the choice to the broker."""
SHAPE = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}'


def brokers_of(text: str) -> tuple[int, ...]:
    """Return the broker ids of a list such as `2,3`."""
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isdecimal() for number in numbers) or len(set(numbers)) < len(numbers):
        raise usage_error(
            f"invalid value {text!r} for --to: expected distinct broker ids separated by commas, such as 2,3"
        )
    return tuple(map(int, numbers))


class PlannedMove(NamedTuple):
    """The target of one partition."""

    replicas: tuple[int, ...]
    directories: tuple[str, ...]
    """One directory per replica, or `ANYWHERE`."""


def moves_of_file(place: str) -> dict[TopicPartition, PlannedMove]:
    """Return the moves of a reassignment file in the format of Kafka's tool."""
    option = f"--reassignment-json-file {place}"
    try:
        plan = json.loads(Path(place).read_text(encoding="utf-8"))
        moves = dict(move_of(each) for each in plan["partitions"])
    except OSError as error:
        raise usage_error(f"{option}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise usage_error(f"{option} is not a valid plan ({error}): expected {SHAPE}") from None
    if len(moves) < len(plan["partitions"]):
        raise usage_error(f"{option} lists a partition twice: list it once")
    return moves


def move_of(entry: Mapping[str, Any]) -> tuple[TopicPartition, PlannedMove]:
    """Return the partition of a plan's entry and its move; raise ValueError if the entry is malformed."""
    topic, partition, replicas = entry["topic"], entry["partition"], entry["replicas"]
    numbers = [partition, *replicas]
    if not isinstance(topic, str) or not replicas or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError("a topic is text, a partition and brokers are numbers")
    directories = tuple(entry.get("log_dirs", ())) or (ANYWHERE,) * len(replicas)
    if len(directories) != len(replicas) or not all(isinstance(each, str) and each for each in directories):
        raise ValueError(f'log_dirs are one directory for each of the replicas, or "{ANYWHERE}"')
    return TopicPartition(topic, partition), PlannedMove(tuple(replicas), directories)
