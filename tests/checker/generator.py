"""Plan a round: the senders, readers and copiers, and the moments of crashes. Pure: randomness comes from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum

KILLED = "killed"
"""From outside, once the history has grown by so many events."""
AFTER_APPEND = "after_append"
"""When so many batches of clients are appended, and the last one not answered."""
AFTER_PREPARED = "after_prepared"
"""When so many transactions are decided, and the last one has no marker yet."""
AFTER_MARKER = "after_marker"
"""When so many markers are written, and what follows the last one is not."""
POINTS = (KILLED, AFTER_APPEND, AFTER_PREPARED, AFTER_MARKER)


class End(Enum):
    """How a worker ends a transaction."""

    COMMIT = "commit"
    ABORT = "abort"
    ABANDON = "abandon"
    """Another producer takes over the transactional id, and the old one stays silent."""
    ZOMBIE = "zombie"
    """Another producer takes over, and the old one continues as if it still owned the id."""


@dataclass(frozen=True, slots=True)
class Sends:
    """Some records to one place."""

    place: str
    count: int


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction; without transactions, one flush."""

    sends: tuple[Sends, ...]
    end: End = End.COMMIT


@dataclass(frozen=True, slots=True)
class Copying:
    """One transaction of consume, transform, produce: of up to so many records."""

    count: int
    end: End


@dataclass(frozen=True, slots=True)
class Crash:
    """How one life of the broker ends."""

    point: str
    count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A round."""

    sources: tuple[str, ...]
    """Places that are copied from, each by a copier of its own; plain producers feed them."""
    targets: tuple[str, ...]
    """Places that transactions write to."""
    feeders: tuple[tuple[Step, ...], ...] = ()
    transactors: tuple[tuple[Step, ...], ...] = ()
    copiers: tuple[tuple[Copying, ...], ...] = ()
    """For each source; when they are at their end they go on committing until all is copied."""
    readers: int = 0
    crashes: tuple[Crash, ...] = ()


def planned(
    seed: int, *, steps: int = 12, workers: int = 2, crashes: int = 3, ends: tuple[End, ...] = tuple(End)
) -> Plan:
    """A plan at random; the same seed gives the same."""
    chance = random.Random(seed)
    sources = tuple(f"in-{number}" for number in range(workers))
    targets = tuple(f"out-{number}" for number in range(workers + 1))
    return Plan(
        sources,
        targets,
        feeders=tuple(tuple(sending(chance, sources) for _ in range(steps)) for _ in range(workers)),
        transactors=tuple(
            tuple(sending(chance, targets, end_of(chance, ends)) for _ in range(steps)) for _ in range(workers)
        ),
        copiers=tuple(
            tuple(Copying(chance.randint(1, 8), end_of(chance, ends)) for _ in range(steps // 2)) for _ in sources
        ),
        readers=workers,
        crashes=tuple(crash(chance) for _ in range(crashes)),
    )


def sending(chance: random.Random, places: tuple[str, ...], end: End = End.COMMIT) -> Step:
    """Records to some of these places."""
    chosen = chance.sample(places, chance.randint(1, len(places)))
    return Step(tuple(Sends(place, chance.randint(1, 6)) for place in chosen), end)


def end_of(chance: random.Random, ends: tuple[End, ...]) -> End:
    """Half of all are committed."""
    return End.COMMIT if chance.random() < 0.5 else chance.choice(ends)


def crash(chance: random.Random) -> Crash:
    """Somewhere in a life that lasts a second or so."""
    point = chance.choice(POINTS)
    return Crash(point, chance.randint(20, 80) if point == KILLED else chance.randint(1, 12))
