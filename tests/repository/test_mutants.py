"""`make mutants`: the mutations that it makes, the code that it skips, and the score."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants.mutations import mutants
from tools.mutants.rooms import ROOMS, ROOT, chosen, modules_of
from tools.mutants.score import Entry, Survivor, known_as_equivalent, read, told, without_equivalent, write
from tools.mutants.witness import IMPORTING, Witness


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a < b → a <= b", "a < b → a >= b"]),
        ("a is b", ["a is b → a is not b"]),
        ("a and b and c", ["a and b and c → a and b", "a and b and c → a and c", "a and b and c → b and c"]),
        ("if a: b", ["a → not a"]),
        ("[a for a in b if c]", ["c → not c"]),
        ("not a", ["not a → a"]),
        ("a + b", ["a + b → a - b"]),
        ("a = 7", ["7 → 8"]),
        ("a = True", ["True → False"]),
        ("max(a, b)", ["max(a, b) → min(a, b)", "max(a, b) → pass"]),
        ("a.b = c", ["a.b = c → pass"]),
        ("a += b", ["a += b → pass"]),
        ("raise a", ["raise a → pass"]),
        ("x = replace(a, b=c)", ["replace(a, b=c) → replace(a)"]),
        ("a < 0", ["a < 0 → a <= 0", "a < 0 → a >= 0"]),
    ],
)
def test_a_mistake_is_planted(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"what a module says"',
        "assert a < b",
        "LOG.info('%d', a + 1)",
        "def __repr__(self): return a + 1",
        "raise_ = f'{a + 1}'",
        "a: int | None",
        "if TYPE_CHECKING:\n    a = 1",
        "a = 'text' + b",
    ],
)
def test_nothing_is_planted_in_excluded_code(source: str) -> None:
    assert changes(source) == []


@pytest.mark.house
@pytest.mark.parametrize("room", ROOMS)
def test_every_mistake_in_the_rooms_can_be_loaded_and_moves_no_line(room: str) -> None:
    for module in modules_of(room):
        source = module.path.read_bytes()
        for mutant in mutants(source.decode())[::29]:
            planted = mutant.planted(source)
            ast.parse(planted)
            assert planted.count(b"\n") == source.count(b"\n")
            assert planted != source


def test_modules_are_selected_by_prefix_and_lines_within_them() -> None:
    assert [module.name for module in chosen(["coordination/offsets/pen"])] == ["coordination/offsets/pending.py"]
    [module] = chosen(["src/ottla/storage/segments/retention.py:29-30"])
    assert (module.name, module.lines) == ("storage/segments/retention.py", range(29, 31))
    assert len(chosen([])) == sum(len(modules_of(room)) for room in ROOMS)
    with pytest.raises(SystemExit, match="no module of the pure rooms begins with 'broker'; the rooms are protocol"):
        chosen(["broker"])
    with pytest.raises(SystemExit, match="'x' is not a line or a range of lines"):
        chosen(["storage/segments/retention.py:x"])


def test_every_room_has_modules_and_tests() -> None:
    for name, room in ROOMS.items():
        assert modules_of(name)
        assert [test for test in room.tests if not (ROOT / "tests" / test).exists()] == []


def test_the_score_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    entries = {
        "a.py": Entry(9, 5, 1, (Survivor(3, 'if "x" in é:', "x → not x", True), Survivor(4, "b", "b → c", False))),
        "b.py": Entry(0, 0, 0, ()),
    }
    write(entries, tmp_path / "score.toml")
    assert read(tmp_path / "score.toml") == entries
    assert list(told(entries))[-1] == "3 of 5 noticed (60.0%)"


def test_an_accepted_mutation_is_still_in_the_source_with_a_reason_and_is_not_planted() -> None:
    for (name, text, change), reason in known_as_equivalent().items():
        source = (ROOT / "src" / "ottla" / name).read_text(encoding="utf-8")
        found = [m for m in mutants(source) if source.splitlines()[m.line - 1].strip() == text and m.change == change]
        assert found, f"tools/mutants/equivalent.toml: {name} has no {text!r} with {change!r} any more; remove it there"
        assert reason
        assert without_equivalent(name, source, found, known_as_equivalent()) == []


def test_statements_of_a_module_and_its_class_bodies_concern_every_test(tmp_path: Path) -> None:
    witness = Witness(tmp_path, tmp_path / "reached")
    witness.test = "the first that loads it"
    code = compile("class A:\n    x = 1\ndef f():\n    return 1\nf()\n", f"{tmp_path}/ottla/m.py", "exec")
    before = sys.gettrace()
    sys.settrace(witness.enter)
    try:
        exec(code, {"__name__": "m"})
    finally:
        sys.settrace(before)
    assert [witness.reached.lines["m.py", line] for line in (2, 4)] == [{IMPORTING}, {witness.test}]


@pytest.mark.house
def test_a_mutation_that_a_test_detects_and_one_that_no_test_detects(tmp_path: Path) -> None:
    """Run `make mutants` as a whole for two lines, one of them with good tests, in a process of its own."""
    code = (
        "from pathlib import Path; import sys\n"
        "from tools.mutants import rooms, __main__ as main\n"
        "rooms.ROOMS['records'] = rooms.Room(('records/murmur2.py',), ('records/test_murmur2.py',))\n"
        "rooms.ROOMS['client/consumer'] = rooms.Room(('client/consumer/subscription_state.py',),"
        " ('client/consumer/test_subscription_state.py',))\n"
        "loaded_by_a_conftest = 'client/consumer/subscription_state.py:46'\n"
        "sys.argv[1:] = ['records/murmur2.py', loaded_by_a_conftest, '--sample', '4', '--jobs', '2', '--dry']\n"
        "main.main()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "records/murmur2.py: 4 of 4 noticed" in run.stdout
    assert "client/consumer/subscription_state.py: 1 of 1 noticed" in run.stdout
