"""Every block of the README and its further pages is run by `interop/test_readme.py` or a test with Spark."""

from __future__ import annotations

import re

import pytest

from tests.repository.pages import blocks_of
from tests.repository.readme import BLOCK, GUIDE, README, ROOT, blocks, commands, extras, programs, spark_blocks


def test_every_block_is_run_by_a_test() -> None:
    assert (len(programs()), len(spark_blocks()), len(commands())) == (5, 4, 2)
    others = [text for text in blocks("") if text not in commands()]
    assert [text for text in others if not re.match(r"(make|pip install) ", text)] == []


def test_readme_can_be_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= 150


def test_the_korean_readme_shows_the_same_blocks() -> None:
    korean = BLOCK.findall((ROOT / "README.ko.md").read_text(encoding="utf-8"))
    assert korean == BLOCK.findall(README) != []


def test_how_kafka_works_shows_the_same_blocks_in_both_languages() -> None:
    assert blocks_of("how-kafka-works.ko.md") == blocks_of("how-kafka-works.md") != []


@pytest.mark.parametrize("name", sorted(set(re.findall(r"'\.\[([\w,]+)\]'", GUIDE))))
def test_an_extra_that_is_named_exists(name: str) -> None:
    assert set(name.split(",")) <= extras()
