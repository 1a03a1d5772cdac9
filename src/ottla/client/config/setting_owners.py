"""Which client takes which setting: consumer, producer and admin have most of them in common, and some each for itself.

Read from the tables of options when somebody gives a setting that is not there, or one table for all of them.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from ottla.client.config.synonyms import RENAMED, UNDERSTOOD, advice
from ottla.config import options_of

Face = Literal["admin", "consumer", "producer"]
FACES: tuple[Face, ...] = ("admin", "consumer", "producer")


@cache
def configs() -> dict[Face, type]:
    """What each client's settings are read into."""
    from ottla.client.admin.config import AdminConfig
    from ottla.client.consumer.config import ConsumerConfig
    from ottla.client.producer.config import ProducerConfig

    return {"admin": AdminConfig, "consumer": ConsumerConfig, "producer": ProducerConfig}


def face_of(config: type) -> Face:
    """The client whose settings are read into this."""
    return next(face for face, one in configs().items() if one is config)


@cache
def names_of(face: Face | None) -> frozenset[str]:
    """The dotted names that such a client knows, or any."""
    faces = FACES if face is None else (face,)
    return frozenset(option.name for one in faces for option in options_of(configs()[one]))


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


def told_of(name: str, face: Face | None) -> str | None:
    """What to say of a setting that such a client, or any, does not take: it is another's, or has another name here; None where nothing is known of it."""
    if face is not None and (elsewhere := taken_elsewhere(name, face)) is not None:
        return elsewhere
    better = advice(name, names_of(face))
    return None if better is None else f"unknown setting {name!r}: {better}"


def with_article(face: Face) -> str:
    return f"an {face}" if face == "admin" else f"a {face}"
