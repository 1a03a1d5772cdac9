"""Ctrl-C in the middle of leaving: the group is left all the same, wherever it strikes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer
from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator
from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership

PARTS = [ConsumerCoordinator.close, ConsumerCoordinator.leave, ConsumerCoordinator._go]
MEMBERSHIPS = {"classic": ClassicMembership, "consumer": ConsumerMembership}


@pytest.fixture
def admin(group_broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=group_broker.bootstrap_servers) as admin:
        yield admin


class Strike:
    """Ctrl-C at one of the places where Python hears it in some functions, as they begin and behind what they call in C, counted as they are run."""

    def __init__(self, codes: set[CodeType], number: int) -> None:
        self.codes, self.number = codes, number
        self.struck = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if frame.f_code in self.codes and event in {"call", "c_return"} and not self.struck:
            self.number -= 1
            if self.number < 0:
                self.struck = True
                raise KeyboardInterrupt


def closed_under(strike: Strike, consumer: Consumer) -> None:
    sys.setprofile(strike)
    try:
        consumer.close()
    except KeyboardInterrupt:
        consumer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("protocol", MEMBERSHIPS)
def test_wherever_it_strikes_nobody_is_waited_for(
    group_broker: Broker, group_id: str, shared_topic: str, admin: Admin, protocol: str
) -> None:
    kind: Any = MEMBERSHIPS[protocol]
    codes = {each.__code__ for each in (*PARTS, kind.prepare_leaving, kind.leave, kind.unsubscribe)}
    number, strike = 0, Strike(set(), 0)
    while number == 0 or strike.struck:
        settings = {
            "group_id": group_id,
            "group_protocol": protocol,
            "bootstrap_servers": group_broker.bootstrap_servers,
        }
        consumer = Consumer(settings)
        consumer.subscribe([shared_topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        strike = Strike(codes, number)
        closed_under(strike, consumer)
        (group,) = admin.describe_consumer_groups([group_id]).values()
        assert list(group.members) == [], f"Ctrl-C at line {number}"
        number += 1
    assert number > 10
