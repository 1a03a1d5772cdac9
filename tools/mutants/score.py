"""The result by module: `score.toml`, written by `make mutants`.

`equivalent.toml` is written by hand: equivalent mutants, which do not change the module's promised behaviour. They are
identified by the text of their line, so that they are found again when lines move.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tools.mutants.mutations import Mutant

SCORE = Path(__file__).with_name("score.toml")
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
HEAD = """\
# Which mistakes the tests notice: written by `make mutants`, one entry for each module that was tried last.
# `possible` mistakes are those of the whole module, `tried` a sample of them drawn with `seed` (all where it is 0).
"""


class Survivor(NamedTuple):
    """A mistake that no test noticed."""

    line: int
    text: str
    """The line of the source."""
    change: str
    reached: bool
    """True if any test executes the line."""


class Entry(NamedTuple):
    """How a module fared."""

    possible: int
    tried: int
    seed: int
    survivors: tuple[Survivor, ...]

    @property
    def killed(self) -> int:
        return self.tried - len(self.survivors)


def read(path: Path = SCORE) -> dict[str, Entry]:
    """The stored result."""
    if not path.exists():
        return {}
    modules = tomllib.loads(path.read_text(encoding="utf-8")).get("modules", {})
    return {name: entry_of(kept) for name, kept in modules.items()}


def entry_of(kept: Mapping[str, Any]) -> Entry:
    survivors = tuple(Survivor(**each) for each in kept.get("survivors", ()))
    return Entry(kept["possible"], kept["tried"], kept["seed"], survivors)


def write(entries: Mapping[str, Entry], path: Path = SCORE) -> None:
    """Keep all of it, in the order of the modules' names."""
    path.write_text("\n".join([HEAD, *(line for name in sorted(entries) for line in lines_of(name, entries[name]))]))


def lines_of(name: str, entry: Entry) -> Iterator[str]:
    """Return one module as TOML; its basic strings have JSON's syntax."""
    yield f'[modules."{name}"]'
    yield f"possible = {entry.possible}"
    yield f"tried = {entry.tried}"
    yield f"killed = {entry.killed}"
    yield f"seed = {entry.seed}"
    for survivor in entry.survivors:
        yield f'[[modules."{name}".survivors]]'
        for key, value in survivor._asdict().items():
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    yield ""


def known_as_equivalent(path: Path = EQUIVALENT) -> dict[tuple[str, str, str], str]:
    """Return the reasons of equivalent mutants by module, line and change."""
    kept = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {(each["module"], each["text"], each["change"]): each["reason"] for each in kept.get("mutants", ())}


def told(entries: Mapping[str, Entry]) -> Iterator[str]:
    """The table that a person sees, and its sum."""
    width = max(map(len, entries), default=6)
    yield f"{'module':{width}}  possible  tried  killed  survived"
    for name, entry in sorted(entries.items()):
        yield f"{name:{width}}  {entry.possible:8}  {entry.tried:5}  {entry.killed:6}  {len(entry.survivors):8}"
    tried, killed = (sum(column) for column in zip(*((e.tried, e.killed) for e in entries.values()), strict=True))
    yield f"{killed} of {tried} noticed ({killed / max(tried, 1):.1%})"


def survivor_of(mutant: Mutant, source: str, *, reached: bool) -> Survivor:
    """Return the stored form."""
    return Survivor(mutant.line, source.splitlines()[mutant.line - 1].strip(), mutant.change, reached)


def without_equivalent(
    module: str, source: str, found: Iterable[Mutant], known: Mapping[tuple[str, str, str], str]
) -> list[Mutant]:
    """The mistakes that are some."""
    lines = source.splitlines()
    return [each for each in found if (module, lines[each.line - 1].strip(), each.change) not in known]
