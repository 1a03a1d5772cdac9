"""Lists and tables instead of single records, and the records that cause an error."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import ottla
from tests.client.conftest import NewTopicName, eventually
from tests.client.process.running import filled, records_of, running, settled, upper, values_of


def raised(table: pa.Table) -> pa.Table:
    """Upper case, column by column."""
    return table.set_column(1, "value", pc.ascii_upper(table.column("value").cast(pa.string())))


def whole_numbers(table: pa.Table) -> pa.Table:
    """Raises when any value is no number."""
    numbers: Any = table.column("value").cast(pa.string()).cast(pa.int64())
    return pa.table({"value": numbers.cast(pa.string())})


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_function_of_tables_gets_and_returns_columns(
    servers: str, new_topic: NewTopicName, exactly_once: bool
) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a", "b", "c"])
    with running(servers, source, raised, to=target, arrow=True, exactly_once=exactly_once):
        eventually(settled(servers, source, source, 3))
    assert [(record.key, record.value) for record in records_of(servers, target)] == [
        (b"k", b"A"),
        (b"k", b"B"),
        (b"k", b"C"),
    ]


def test_tables_may_target_several_topics_and_be_batches_or_none(servers: str, new_topic: NewTopicName) -> None:
    source, target, other = new_topic(), new_topic(), new_topic()
    filled(servers, source, ["a", "b"])

    def spread(table: pa.Table) -> Any:
        yield table.select(["value"])
        yield None
        yield ottla.Outgoing(table.select(["value"]).to_batches()[0], topic=other)
        yield b"%d rows" % table.num_rows

    with running(servers, source, spread, to=target, arrow=True):
        eventually(settled(servers, source, source, 2))
    assert values_of(servers, other)[:1] == [b"a"]
    assert values_of(servers, target)[0] == b"a"
    assert sum(int(value.split()[0]) for value in values_of(servers, target) if value.endswith(b"rows")) == 2


def test_headers_are_in_the_table_on_request_and_are_forwarded(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    with ottla.Producer(bootstrap_servers=servers) as producer:
        producer.send(source, b"v", headers=[("trace", b"7")])
    with running(servers, source, lambda table: table, to=target, arrow=True, include_headers=True):
        eventually(settled(servers, source, source, 1))
    assert records_of(servers, target)[0].headers == [("trace", b"7")]


def test_rows_that_make_a_table_function_raise_become_dead_letters(servers: str, new_topic: NewTopicName) -> None:
    source, target, letters = new_topic(), new_topic(), new_topic()
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(20):
            producer.send(source, b"none" if number in (3, 4, 17) else b"%d" % number, headers=[("h", b"%d" % number)])
    with running(servers, source, whole_numbers, to=target, arrow=True, dead_letter_topic=letters):
        eventually(settled(servers, source, source, 20))
    assert [int(value) for value in values_of(servers, target)] == [n for n in range(20) if n not in (3, 4, 17)]
    found = [dict(letter.headers) for letter in records_of(servers, letters)]
    assert [reported["__connect.errors.offset"] for reported in found] == [b"3", b"4", b"17"]
    assert [reported["h"] for reported in found] == [b"3", b"4", b"17"]
    assert {reported["__connect.errors.exception.class.name"] for reported in found} == {b"pyarrow.lib.ArrowInvalid"}


def test_records_that_make_a_batch_function_raise_become_dead_letters(servers: str, new_topic: NewTopicName) -> None:
    source, target, letters = new_topic(), new_topic(), new_topic()
    filled(servers, source, ["none" if number == 6 else str(number) for number in range(10)])

    def numbers(records: list[ottla.ConsumerRecord]) -> list[bytes]:
        return [b"%d" % int(record.value or b"") for record in records]

    with running(servers, source, numbers, to=target, batches=True, dead_letter_topic=letters):
        eventually(settled(servers, source, source, 10))
    assert values_of(servers, target) == [b"%d" % number for number in range(10) if number != 6]
    assert values_of(servers, letters) == [b"none"]


def test_an_exception_of_a_table_function_ends_the_loop_without_a_dead_letter_topic(
    servers: str, new_topic: NewTopicName
) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["none"])
    with (
        pytest.raises(pa.ArrowInvalid),
        running(servers, source, whole_numbers, to=target, arrow=True) as processor,
    ):
        eventually(lambda: processor.is_over)
    assert not settled(servers, source, source, 1)()


def test_many_results_of_a_poll_keep_their_order_whatever_they_are(servers: str, new_topic: NewTopicName) -> None:
    source, target, other = new_topic(), new_topic(3), new_topic()
    filled(servers, source, [str(number) for number in range(60)])

    def mixed(record: ottla.ConsumerRecord) -> Any:
        number = int(record.value or b"")
        key = b"%d" % (number % 3)
        yield ottla.Outgoing(record.value, key=key)
        yield ottla.Outgoing(record.value, topic=other, headers={"h": b"1"} if number % 2 else None)

    with running(servers, source, mixed, to=target):
        eventually(settled(servers, source, source, 60))
    by_key: dict[bytes, list[int]] = {}
    for record in records_of(servers, target):
        by_key.setdefault(record.key or b"", []).append(int(record.value or b""))
    assert by_key == {b"%d" % key: list(range(key, 60, 3)) for key in range(3)}
    assert [int(value) for value in values_of(servers, other)] == list(range(60))


def test_interceptors_see_each_record(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, [str(number) for number in range(40)])
    seen: list[Any] = []

    class Watcher:
        def on_send(self, record: Any) -> Any:
            seen.append(record.value)
            return record

    def watched(**settings: Any) -> ottla.Producer:
        return ottla.Producer(interceptor_classes=[Watcher()], **settings)

    with running(servers, source, upper, to=target, make=watched):
        eventually(settled(servers, source, source, 40))
    assert seen == [b"%d" % number for number in range(40)]


def test_committed_offsets_include_control_records(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    with ottla.Producer(bootstrap_servers=servers, transactional_id=f"fill-{source}") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(source, b"a")
    with running(servers, source, upper, to=target):
        eventually(settled(servers, source, source, 2))  # the record and the marker: no lag is left
    assert values_of(servers, target) == [b"A"]
