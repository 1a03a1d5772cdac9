"""Regular expressions that are matched as RE2 would, in time that cannot explode."""

from __future__ import annotations

import random
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.regular_expression import RegularExpression, TooMuchWork, compiled
from ottla.coordination.regular_syntax import SyntaxFault

MATCHES = [
    ("orders", "orders"), (".*", ""), ("a.*", "abc"), ("(orders|payments)-[0-9]+", "orders-12"), ("^t$", "t"),
    ("[^a-c]x?", "d"), (r"\w+\.\d{2,3}", "a_b.123"), ("(?i)ABC", "abC"), ("a(?i:B)c", "abc"), ("a{2}", "aa"),
    (r"\Qa.b\E+", "a.bb"), (r"\Qa+", "a+"), (r"\Q\Ea", "a"), ("[[:alpha:]_]+", "ab_"), (r"\bfoo\b.*", "foo-bar"), ("x{,3}", "x{,3}"), ("a|", ""), ("{", "{"), ("{a}", "{a}"), ("{2", "{2"),
    (r"\p{Lu}\pL+", "Abc"), (r"\x41\x{42}", "AB"), (r"\A(?P<all>t+?)\z", "ttt"), (r"[\w.-]+", "a.b-c"), ("(?:a|b)*", "abba"),
    (r"[\]a]", "]"), ("[]a]", "]"), (r"[a\-z]", "-"), (r"\S+\D", "ab"), (r"a\Bb", "ab"), ("((a*)*)*", "aaa"), (r"a\b.", "aé"), ("[[:punct:]]+", "!_~"),
]  # fmt: skip
DIFFERS = [
    ("orders", "orders-1"), ("rders", "orders"), ("a.b", "ab"), ("[^a]", "a"), (r"\d", "a"), ("a{2,3}", "aaaa"),
    ("(?i)a(?-i)b", "aB"), (r"a\bb", "ab"), ("a^b", "ab"), (r"\P{Lu}", "A"), (".", ""), ("[[:punct:]]", " "), ("[[:punct:]]", "é"), ("[[:punct:]]", "\x7f"), ("[[:punct:]]", "1"),
]  # fmt: skip
FAULTS = {
    "(": "missing closing )", "a)": "unexpected )", "[a": "missing closing ]", "*a": "missing argument", "{2}": "missing argument", "a|{1,3}b": "missing argument", "({0,})": "missing argument",
    "a**": "nested repetition",
    "(?=x)": "Perl syntax", "(?<=x)y": "Perl syntax", "(?!x)": "Perl syntax", r"(a)\1": "invalid escape", "\\": "trailing backslash",
    "[z-a]": "character class range", "a{1001}": "repeat count", "a{3,2}": "repeat count", "(" * 500: "too deeply",
    "((a{1000}){1000})": "too large", "[[:what:]]": "character class range", r"\p{Greek}": "character class range", r"\p{Qq}": "character class range", r"\p{L": "character class range", r"\p": "character class range",
    r"\xzz": "invalid escape", "(?P<>a)": "named capture",
}  # fmt: skip


@pytest.mark.parametrize(("regex", "name"), MATCHES)
def test_an_expression_matches_a_topic(regex: str, name: str) -> None:
    assert compiled(regex).matches(name)


@pytest.mark.parametrize(("regex", "name"), DIFFERS)
def test_an_expression_does_not_match_a_topic(regex: str, name: str) -> None:
    assert not compiled(regex).matches(name)


@pytest.mark.parametrize("regex", FAULTS)
def test_an_invalid_expression_is_reported(regex: str) -> None:
    with pytest.raises(SyntaxFault, match=re.escape(FAULTS[regex])):
        RegularExpression(regex)


@pytest.mark.parametrize("regex", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*.*)*b", "(a?){200}a{200}b"])
def test_catastrophic_backtracking_is_reported_soon(regex: str) -> None:
    """By `re` each of these takes longer than a lifetime."""
    assert not compiled(regex).matches("a" * 249)


@given(st.text("ab-|()*+?.[]^{}12,$", max_size=10), st.lists(st.text("ab-", max_size=6), max_size=5))
def test_expressions_valid_in_python_match_alike(regex: str, names: list[str]) -> None:
    try:
        ours = RegularExpression(regex)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            theirs = re.compile(regex)
    except (SyntaxFault, re.error, FutureWarning, OverflowError):
        return
    if "{," in regex:  # for Python that is {0,
        return
    for name in names:
        assert ours.matches(name) == bool(theirs.fullmatch(name)), name


def test_only_a_slow_expression_is_stopped_with_an_error() -> None:
    name = "".join(random.Random(1).choices("ab", k=5_000))
    greedy = RegularExpression(".*a.{900}b")
    greedy.allow(100_000)
    with pytest.raises(TooMuchWork, match="takes too long"):
        greedy.matches(name)
    plain = RegularExpression("flights-[a-z]+|(a|b)*")
    plain.allow(1_000)
    assert plain.matches(name)
