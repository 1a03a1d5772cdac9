"""Rounds against a real broker: a correct one keeps all guarantees, and each planted bug is found.

All are played at the same time, as most of a round is waiting. `OTTLA_SEED=7` plays another one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.checker.generator import (
    AFTER_APPEND,
    AFTER_MARKER,
    AFTER_PREPARED,
    KILLED,
    Copying,
    Crash,
    End,
    Plan,
    Sends,
    Step,
    planned,
)
from tests.checker.history import Ended, Event, GivenUp
from tests.checker.plants import PLANTS
from tests.checker.play import play
from tests.checker.verdict import verdict
from tests.checker.victim import Victim

pytestmark = [pytest.mark.xdist_group("rounds"), pytest.mark.heavy]  # each process would play all rounds again
SEED = int(os.environ.get("OTTLA_SEED", "1"))
Rounds = dict[str, Future[tuple[list[Event], int]]]


def feeding(*crashes: Crash) -> Plan:
    """One plain producer."""
    steps = (Step((Sends("in-0", 5),)),) * 8
    return Plan(("in-0",), ("out-0",), feeders=(steps,), crashes=crashes)


def transacting(*ends: End, crashes: tuple[Crash, ...] = ()) -> Plan:
    """One producer in transactions, and one that reads."""
    steps = tuple(Step((Sends("out-0", 3),), end) for end in ends)
    return Plan((), ("out-0",), transactors=(steps,), readers=1, crashes=crashes)


def copying(*ends: End) -> Plan:
    """A plan for one transactional copier."""
    fed = (feeding().feeders[0][:2],)
    return Plan(("in-0",), ("out-0",), feeders=fed, copiers=(tuple(Copying(5, end) for end in ends),))


DEATHS = tuple(Crash(point, count) for point, count in [(AFTER_MARKER, 4), (AFTER_APPEND, 9), (AFTER_PREPARED, 3)])
SOUND = "sound"
PLANS = {
    SOUND: replace(planned(SEED, steps=6), crashes=DEATHS),
    "forgets_a_marker": transacting(End.COMMIT, End.COMMIT, End.COMMIT),
    "commits_what_was_aborted": transacting(End.ABORT, End.COMMIT),
    "acknowledges_before_appending": feeding(Crash(KILLED, 20)),
    "forgets_sequences_on_restart": feeding(Crash(AFTER_APPEND, 4)),
    "shows_what_is_not_stable": transacting(End.ABORT, End.COMMIT, End.ABORT),
    "lets_zombies_write": transacting(End.COMMIT, End.ZOMBIE),
    "forgets_prepared_transactions_on_restart": transacting(
        End.COMMIT, End.COMMIT, crashes=(Crash(AFTER_PREPARED, 2),)
    ),
    "keeps_offsets_of_aborted_transactions": copying(End.ABORT, End.ABORT),
    "forgets_promised_offsets": copying(End.COMMIT, End.ABORT),
}
FOUND_AS = {
    "forgets_a_marker": "hanging",
    "commits_what_was_aborted": "seen_aborted",
    "acknowledges_before_appending": "lost",
    "forgets_sequences_on_restart": "doubled",
    "shows_what_is_not_stable": "seen_aborted",
    "lets_zombies_write": "zombie",
    "forgets_prepared_transactions_on_restart": "unseen",
    "keeps_offsets_of_aborted_transactions": "offset_of_aborted",
    "forgets_promised_offsets": "offset_lost",
}


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rounds]:
    """Return the events of each round."""
    folder = tmp_path_factory.mktemp("rounds")

    def played(name: str) -> tuple[list[Event], int]:
        with Victim(folder / name, name if name in PLANTS else None) as victim:
            return play(PLANS[name], victim), victim.deaths

    with ThreadPoolExecutor(len(PLANS)) as pool:
        yield {name: pool.submit(played, name) for name in PLANS}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_found(rounds: Rounds, plant: str) -> None:
    events, _ = rounds[plant].result()
    assert FOUND_AS[plant] in {anomaly.kind for anomaly in verdict(events)}


def test_a_correct_broker_keeps_every_guarantee_while_it_is_killed_repeatedly(rounds: Rounds) -> None:
    events, deaths = rounds[SOUND].result()
    assert verdict(events) == []
    assert not [event for event in events if isinstance(event, GivenUp)]
    assert sum(isinstance(event, Ended) for event in events) > 10
    assert deaths == len(DEATHS)
