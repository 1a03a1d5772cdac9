"""Which client takes which setting: consumer, producer and admin have most of them in common, and some each for itself.

Read from the tables of options when somebody gives a setting that is not there, or one table for all of them.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from ottla.client.synonyms import RENAMED, UNDERSTOOD
from ottla.config import options_of

Face = Literal["admin", "consumer", "producer"]
FACES: tuple[Face, ...] = ("admin", "consumer", "producer")


@cache
def names_of(face: Face) -> frozenset[str]:
    """The dotted names that such a client knows."""
    from ottla.client.admin.config import AdminConfig
    from ottla.client.consumer.config import ConsumerConfig
    from ottla.client.producer.config import ProducerConfig

    config = {"admin": AdminConfig, "consumer": ConsumerConfig, "producer": ProducerConfig}[face]
    return frozenset(option.name for option in options_of(config))


def takers(name: str) -> list[Face]:
    """Who knows a setting, under Kafka's name or librdkafka's."""
    dotted = name.replace("_", ".")
    return [face for face in FACES if UNDERSTOOD.get(dotted, dotted) in names_of(face)]


def taken_elsewhere(name: str, face: Face) -> str | None:
    """What to say of a setting of another client, under any client's name for it; None where no other takes it either."""
    dotted = name.replace("_", ".")
    others = takers(RENAMED.get(dotted, dotted))
    if not others or face in others:
        return None
    return f"{name} is for {' or '.join(map(with_article, others))}, and this is {with_article(face)}; leave it out"


def with_article(face: Face) -> str:
    return f"an {face}" if face == "admin" else f"a {face}"
