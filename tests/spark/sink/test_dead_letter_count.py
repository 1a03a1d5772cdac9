"""The count of dead letters that a sink keeps for the status of a pipeline."""

from __future__ import annotations

from pathlib import Path

from ottla.spark.sink.dead_letter_count import add_dead_letters, read_count


def test_each_batch_is_counted_once_even_if_its_commit_is_repeated(tmp_path: Path) -> None:
    file = tmp_path / "count.json"
    for batch, count in ((0, 2), (0, 2), (1, 0), (2, 3), (1, 5)):
        add_dead_letters(file, batch, count)
    assert read_count(file) == (2, 5)


def test_there_is_not_a_count_before_the_first_dead_letter_and_in_a_damaged_file(tmp_path: Path) -> None:
    file = tmp_path / "count.json"
    add_dead_letters(file, 4, 0)
    assert not file.exists()
    file.write_text("{")
    assert read_count(file) == (-1, 0)
