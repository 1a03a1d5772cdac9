"""`ottla dead-letters`: what workers gave up is shown, and sent back to its origin once."""

from __future__ import annotations

import json

import pytest

import ottla as ottla_clients
from ottla import Admin, NewTopic, Producer
from ottla.client.work.dead_letters import failure_headers
from tests.cli.conftest import ottla
from tests.client.process.running import records_of


@pytest.fixture
def letters(address: str, topic: str) -> str:
    """A topic with the dead letters of `orders-TOPIC`, partition 1, offsets 0 to 3, and one record without headers."""
    source = f"orders-{topic}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(source, 2), NewTopic(topic, 1)])
    with Producer(bootstrap_servers=address) as producer:
        for number in range(4):
            producer.send(source, b"%d" % number, key=b"k", partition=1, headers={"own": b"kept"})
        producer.flush()
        for record in records_of(address, source):
            headers = failure_headers(record, ValueError(f"bad {record.offset}"), 3, "billing")
            producer.send(topic, record.raw_value, key=record.raw_key, headers=headers)
        producer.send(topic, b"by hand")
    return topic


def shown(address: str, topic: str, *options: object) -> list[str | None]:
    """The origins that `show` prints."""
    found = ottla("dead-letters", "show", topic, "--json", *options, "--bootstrap-server", address)
    assert found.status == 0, found.err
    return [each["origin"] for each in json.loads(found.out)]


def resend(address: str, topic: str, *options: object) -> str:
    done = ottla("dead-letters", "resend", topic, "--yes", *options, "--bootstrap-server", address)
    assert done.status == 0, done.err
    return done.err


def resent(address: str, topic: str) -> list[ottla_clients.ConsumerRecord]:
    """The records that came back to the origin."""
    return [each for each in records_of(address, f"orders-{topic}") if each.offset > 3]


def test_dead_letters_are_shown_with_origin_attempts_and_error(address: str, letters: str) -> None:
    found = ottla("dead-letters", "show", letters, "--bootstrap-server", address)
    head, first, *_, last = found.out.splitlines()
    assert head.split() == ["PARTITION", "OFFSET", "ORIGIN", "KEY", "ATTEMPTS", "ERROR", "MESSAGE"]
    assert first.split() == ["0", "0", f"orders-{letters}-1@0", "k", "3", "builtins.ValueError", "bad", "0"]
    assert last.split()[:2] == ["0", "4"]


def test_each_is_sent_back_once_with_its_own_headers(address: str, letters: str) -> None:
    assert "skipped without an origin in their headers: 1 records" in resend(address, letters)
    assert "nothing to send back" in resend(address, letters)
    found = resent(address, letters)
    assert [(each.partition, each.key, each.value, each.headers) for each in found] == [
        (1, b"k", b"%d" % number, [("own", b"kept")]) for number in range(4)
    ]
    assert shown(address, letters) == [None]
    assert len(shown(address, letters, "--all")) == 5


def test_chosen_ones_are_sent_back_and_the_others_stay(address: str, letters: str) -> None:
    resend(address, letters, "--where", "value == '2'")
    assert [each.value for each in resent(address, letters)] == [b"2"]
    origin = f"orders-{letters}-1@"
    assert shown(address, letters) == [f"{origin}0", f"{origin}1", f"{origin}3", None]
    resend(address, letters)
    assert sorted(each.value or b"" for each in resent(address, letters)) == [b"0", b"1", b"2", b"3"]


def test_nothing_is_sent_back_without_consent(address: str, letters: str) -> None:
    refused = ottla("dead-letters", "resend", letters, "--bootstrap-server", address)
    assert (refused.status, "add --yes" in refused.err) == (1, True)
    assert resent(address, letters) == []


def test_an_unknown_topic_is_one_sentence(address: str) -> None:
    refused = ottla("dead-letters", "show", "nowhere", "--bootstrap-server", address)
    assert (refused.status, "topic 'nowhere' does not exist" in refused.sentence) == (1, True)


def test_records_that_a_commit_cannot_list_are_not_sent_back(address: str, letters: str) -> None:
    (first, *_) = records_of(address, f"orders-{letters}")
    headers = failure_headers(first, ValueError("bad"), 3, "billing")
    with Producer(bootstrap_servers=address) as producer:
        for number in range(3_300):
            producer.send(letters, b"x", key=b"even" if number % 2 else b"odd", headers=headers)

    refused = ottla(
        "dead-letters", "resend", letters, "--yes", "--where", "key == 'odd'", "--bootstrap-server", address
    )

    assert (refused.status, "nothing was sent back: the commit cannot list 1650 separate" in refused.err) == (1, True)
    assert resent(address, letters) == []
