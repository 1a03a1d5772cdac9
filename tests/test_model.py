"""The common types of the model."""

from __future__ import annotations

import tempfile

from ottla.model import FileSlice, Node, TopicPartition, size_of


def test_a_partition_prints_as_kafkas_tools_print_it() -> None:
    assert str(TopicPartition("flights", 3)) == "flights-3"


def test_partitions_compare_and_sort_by_topic_then_number() -> None:
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]) == [
        TopicPartition("a", 2),
        TopicPartition("a", 10),
        TopicPartition("b", 0),
    ]


def test_a_node_prints_as_an_address() -> None:
    assert str(Node(1, "127.0.0.1", 9092)) == "127.0.0.1:9092"


def test_the_size_of_a_frame_counts_what_is_still_in_its_file() -> None:
    with tempfile.TemporaryFile() as file:
        assert size_of([b"head", bytearray(3), memoryview(b"xy"), FileSlice(file, position=100, size=1000)]) == 1009
