"""`python -m tests.checker --rounds 100 --seed 7`: many rounds by hand, or an old history judged again."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.checker import history
from tests.checker.generator import planned
from tests.checker.history import Event
from tests.checker.plants import PLANTS
from tests.checker.play import play
from tests.checker.verdict import Anomaly, verdict
from tests.checker.victim import Victim


def main() -> int:
    """How many rounds were bad."""
    parser = argparse.ArgumentParser(prog="python -m tests.checker", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the next has the next")
    parser.add_argument("--steps", type=int, default=30, help="transactions of each worker")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--crashes", type=int, default=6, help="deaths of the broker in each round")
    parser.add_argument("--plant", choices=PLANTS, help="a bug for the broker to have")
    parser.add_argument("--out", type=Path, default=Path("out/checker"), help="where bad histories are kept")
    parser.add_argument("--history", type=Path, help="judge this one, and play nothing")
    options = parser.parse_args()
    if options.history:
        with options.history.open() as lines:
            return print_anomalies(verdict(history.read(lines)))
    return sum(bool(round_of(options, seed)) for seed in range(options.seed, options.seed + options.rounds))


def round_of(options: argparse.Namespace, seed: int) -> list[Anomaly]:
    """Play and judge one round, and print the verdict."""
    plan = planned(seed, steps=options.steps, workers=options.workers, crashes=options.crashes)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Victim(Path(folder), options.plant) as victim:
        events = play(plan, victim)
        deaths = victim.deaths
    counts = Counter(type(event).__name__ for event in events)
    found = verdict(events)
    print(
        f"seed {seed}: {time.monotonic() - began:.1f} s, {deaths} deaths, {counts['Sent']} records sent, "
        f"{counts['Began']} transactions, {counts['Ended']} ended, {len(events)} events, "
        f"{counts['GivenUp']} gave up, {len(found)} anomalies",
        flush=True,
    )
    print_anomalies(found)
    if found:
        keep(events, options.out, seed)
    return found


def keep(events: list[Event], folder: Path, seed: int) -> None:
    """For `--history`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{seed}.jsonl").open("w") as file:
        history.write(events, file)


def print_anomalies(found: list[Anomaly]) -> int:
    """Print the first anomalies, and return the number of all."""
    for anomaly in found[:20]:
        print(f"  {anomaly.kind}: {anomaly.text}")
    return len(found)


if __name__ == "__main__":
    raise SystemExit(main())
