"""`pytest --behaviours`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.behaviours import DOCUMENT, first_words, read_promises

ROOT = Path(__file__).parent.parent.parent
PLUGIN = 'pytest_plugins = ["tests.behaviours"]'


def run(pytester: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(test)
    return pytester.runpytest_inprocess(*arguments)


def test_a_proved_behaviour_is_listed_with_its_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester, '@__import__("pytest").mark.behaviour("C2")\ndef test_reads():\n    assert False', "--behaviours"
    )
    result.stdout.fnmatch_lines(
        ["C2 *proved*", "*::test_reads", "50 behaviours: 1 proved, 0 in part, 49 by nobody yet"]
    )


def test_listing_runs_no_test_and_succeeds(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_fails():\n    assert False", "--behaviours")
    assert result.ret == 0
    assert "failed" not in result.stdout.str()


def test_an_unproved_behaviour_is_listed_as_unproved(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_nothing():\n    pass", "--behaviours")
    result.stdout.fnmatch_lines(["P7 *nobody *Transactions*", "B5 *nobody *controller*"])


def test_a_partly_proved_behaviour_lists_the_missing_part(pytester: pytest.Pytester) -> None:
    promised = read_promises(DOCUMENT.read_text(encoding="utf-8"))
    name, said = next((name, promise.missing) for name, promise in promised.items() if promise.missing)
    result = run(
        pytester, f'@__import__("pytest").mark.behaviour("{name}")\ndef test_runs():\n    pass', "--behaviours"
    )
    result.stdout.fnmatch_lines(
        [f"{name} *in part*", f"*not yet: {said[:20]}*", "*::test_runs", "50 *: 0 proved, 1 in part, *"]
    )


def test_one_test_may_prove_several_and_its_cases_count_once(pytester: pytest.Pytester) -> None:
    marks = '@pytest.mark.behaviour("B1", "B7")\n@pytest.mark.parametrize("n", [1, 2])'
    result = run(pytester, f"import pytest\n{marks}\ndef test_talks(n):\n    pass", "--behaviours")
    assert result.stdout.str().count("::test_talks") == 2
    result.stdout.fnmatch_lines(["50 behaviours: 2 proved, *"])


def test_an_unknown_id_is_an_error_in_every_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, '@__import__("pytest").mark.behaviour("C99")\ndef test_reads():\n    pass')
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_reads: docs/behaviours.md has no behaviour 'C99'"])


def test_the_document_has_every_id_of_its_five_groups() -> None:
    groups = {"C": 21, "P": 10, "B": 10, "D": 8, "X": 1}
    expected = [f"{letter}{number}" for letter, count in groups.items() for number in range(1, count + 1)]
    assert list(read_promises(DOCUMENT.read_text(encoding="utf-8"))) == expected


def test_a_line_without_a_test_lists_what_is_missing() -> None:
    sources = [file.read_text("utf-8") for tree in ("tests", "interop") for file in (ROOT / tree).rglob("*.py")]
    marks = re.compile(r"\bbehaviour\(([^)]*)\)")
    borne = {name for source in sources for mark in marks.findall(source) for name in re.findall(r'"(\w+)"', mark)}
    promised = read_promises(DOCUMENT.read_text(encoding="utf-8"))
    assert [name for name, promise in promised.items() if name not in borne and not promise.missing] == []


def test_a_long_text_is_cut_at_a_word() -> None:
    assert first_words("one two three", width=9) == "one two …"
    assert first_words("short", width=9) == "short"
