"""`make mutants ARGS="coordination/groups"`: plants mistakes, runs the tests that come by, keeps the score."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tools.mutants import score
from tools.mutants.house import House
from tools.mutants.mutations import Mutant, mutants
from tools.mutants.rooms import ROOMS, Module, chosen
from tools.mutants.trial import Limits, run_tests, warm_up
from tools.mutants.witness import Chosen, Reached, Witness

FIRST_LOOK = Limits(cpu=3600, wall=3600)
NOTHING_RAN = 5  # pytest's exit code
WHOLE_ROOM_SECONDS = 20.0
"""If a room's tests are this fast, a survivor runs all of them, because recorded coverage may be incomplete."""

HOUSES: list[House] = []


class Task(NamedTuple):
    """One mistake to be tried."""

    module: Module
    mutant: Mutant
    tests: dict[str, float]
    everything: dict[str, float]


def main() -> None:
    options = read_options()
    warm_up()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        entries: dict[str, score.Entry] = {}
        modules = chosen(options.modules)
        for room in dict.fromkeys(module.room for module in modules):
            print(f"{room}: which test reaches what …", flush=True)
            reached = look(room, Path(folder))
            for module in modules:
                if module.room == room:
                    entries[module.name] = tried(module, reached, options, Path(folder))
                    if not (module.lines or options.dry):
                        score.write({**score.read(), module.name: entries[module.name]})
    print(*score.told(entries), sep="\n")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument(
        "modules", nargs="*", help="as storage, storage/segments/retention.py or storage/segments/retention.py:29-30"
    )
    parser.add_argument("--sample", type=int, default=20, help="how many mistakes in each module (20)")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at the same time (one a core)")
    parser.add_argument("--dry", action="store_true", help="leave score.toml as it is")
    return parser.parse_args()


def look(room: str, folder: Path) -> Reached:
    """Run the tests of a room once, without any mistake."""
    house, result, log = House(folder / "look"), folder / "reached", folder / "look.log"
    result.unlink(missing_ok=True)
    tests = existing(ROOMS[room].tests)
    run_tests(house.path, tests, [Witness(house.path, result)], FIRST_LOOK, log, first_only=False)
    house.remove()
    if not result.exists():
        raise SystemExit(f"the tests of {room} do not run:\n{log.read_text(encoding='utf-8', errors='replace')}")
    reached: Reached = pickle.loads(result.read_bytes())
    if reached.failing:
        print(f"left out, because they fail without a mistake: {' '.join(sorted(set(reached.failing)))}")
    print(f"{room}: {len(reached.seconds)} tests, {sum(reached.seconds.values()):.0f} s", flush=True)
    return reached


def existing(tests: Sequence[str]) -> list[str]:
    return [f"tests/{name}" for name in tests if Path("tests", name).exists()]


def tried(module: Module, reached: Reached, options: argparse.Namespace, folder: Path) -> score.Entry:
    """Plant a sample of a module's mistakes."""
    source = module.path.read_text(encoding="utf-8")
    possible = score.without_equivalent(module.name, source, mutants(source), score.known_as_equivalent())
    sample, seed = drawn(possible, module, options)
    survivors = []
    begun = time.monotonic()
    for task, noticed in outcomes([task_for(module, mutant, reached) for mutant in sample], options.jobs, folder):
        if noticed:
            if module.lines:
                print(f"noticed   {module.name}:{task.mutant.line}  {task.mutant.change}  ({noticed})", flush=True)
            continue
        survivors.append(score.survivor_of(task.mutant, source, reached=bool(task.tests)))
        nobody = "" if task.tests else "  (no test comes by)"
        print(f"survived  {module.name}:{task.mutant.line}  {task.mutant.change}{nobody}", flush=True)
    seconds = time.monotonic() - begun
    print(f"{module.name}: {len(sample) - len(survivors)} of {len(sample)} noticed, {seconds:.0f} s", flush=True)
    return score.Entry(len(possible), len(sample), seed, tuple(survivors))


def drawn(possible: list[Mutant], module: Module, options: argparse.Namespace) -> tuple[list[Mutant], int]:
    """Return the mutants to try, and the seed that selects the same ones again; 0 for all."""
    if module.lines:
        return [mutant for mutant in possible if mutant.line in module.lines], 0
    if options.all or len(possible) <= options.sample:
        return possible, 0
    chance = random.Random(f"{options.seed} {module.name}")
    return sorted(chance.sample(possible, options.sample)), options.seed


def task_for(module: Module, mutant: Mutant, reached: Reached) -> Task:
    names = reached.tests_of(module.name, mutant.line, mutant.last_line)
    return Task(module, mutant, {name: reached.seconds[name] for name in names}, reached.seconds)


def outcomes(tasks: list[Task], jobs: int, folder: Path) -> Iterator[tuple[Task, str]]:
    """Each mistake with the test that noticed it, or nothing."""
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, fork, move_in, (folder,)) as pool:
        yield from zip(tasks, pool.map(noticed_by, tasks), strict=True)


def move_in(folder: Path) -> None:
    """Every process has a house to itself."""
    HOUSES[:] = [House(folder / f"job-{os.getpid()}")]


def noticed_by(task: Task) -> str:
    """The test that fails by the mistake, if one does."""
    if not task.tests:
        return ""
    [house] = HOUSES
    with house.with_mistake(task.module, task.mutant):
        noticed = failing(task.tests, house)
        whole = task.everything
        if not noticed and len(whole) > len(task.tests) and sum(whole.values()) <= WHOLE_ROOM_SECONDS:
            noticed = failing(whole, house)
        return noticed


def failing(tests: dict[str, float], house: House) -> str:
    """The first of these tests that fails, or why they did not come to an end."""
    verdict = house.folder / "verdict"
    verdict.unlink(missing_ok=True)
    files = sorted({name.partition("::")[0] for name in tests})
    limits = Limits.for_tests(sum(tests.values()))
    code = run_tests(house.path, files, [Chosen(tests, verdict)], limits, house.folder / "log", first_only=True)
    if code == 0:
        return ""
    assert code != NOTHING_RAN, f"none of {files} ran"
    if verdict.exists():
        return verdict.read_text(encoding="utf-8")
    return "out of time" if code is None else "nothing could be loaded"


if __name__ == "__main__":
    main()
