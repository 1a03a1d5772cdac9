"""Java's regular expressions, held against Java's own."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from ottla.errors import ConfigError
from ottla.spark.ranges.java_pattern import java_pattern

NAMES = (
    "orders",
    "Orders",
    "ORDERS",
    "orders.eu-1",
    "a",
    "ab",
    "aab",
    "x_1",
    "x-1",
    "x.1",
    "1",
    "__consumer_offsets",
    "e",
)
PATTERNS = (
    r".*",
    r"orders|a",
    r"\p{Upper}\p{Lower}+",
    r"\p{Lu}.*",
    r"\P{Upper}+",
    r"\p{L}+",
    r"\pL+",
    r"\p{Alnum}+",
    r"[\p{Alpha}\p{Digit}]+",
    r"[^\p{Upper}]+",
    r"[a-z&&[^aeiou]].*",
    r"[a-c[x-z]].*",
    r"[a-z&&[def]]",
    r"\Qx.1\E",
    r"\Qorders.\E.*",
    r"a*+b",
    r"a*+ab",
    r"(?>a+)b",
    r"(?<first>a)\k<first>b",
    r"(?i)orders",
    r"(?i)[^O]rders",
    r"(?i:ORD)ers",
    r"^orders$",
    r"orders\z",
    r"x[._-]1",
    r"x[\w&&[^_]]*.1",
    r"\w+\W\d",
    r"\S+",
    r"(?!__).*",
    r"(a)\1b",
    r"x\x2d1",
    r"x.1",
    r"[]a]b",
    r"\p{Punct}{2}.*",
    r"o{1}rders",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_the_names_that_it_does_in_java(spark: SparkSession, pattern: str) -> None:
    ours = java_pattern("subscribePattern", pattern)
    assert spark._jvm is not None
    java = spark._jvm.java.util.regex.Pattern
    assert {name: ours.fullmatch(name) is not None for name in NAMES} == {
        name: bool(java.matches(pattern, name)) for name in NAMES
    }


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        (r"\p{Klingon}", r"has \\p\{Klingon\}, which is not supported; list its characters"),
        (r"\yes", r"has \\y, which is not supported"),
        ("[", "is not a regular expression: it is incomplete"),
        ("a(", "is not a regular expression: "),
        ("[z-a]", "has a range from 'z' that does not end after it"),
    ],
)
def test_an_unsupported_or_invalid_pattern_is_named(pattern: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"option subscribePattern = .* {sentence}"):
        java_pattern("subscribePattern", pattern)
