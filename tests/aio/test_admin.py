"""The admin for asyncio: the blocking one's methods, awaited."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading

import pytest

import ottla
from ottla import Broker, NewTopic
from ottla.aio import Admin
from ottla.errors import IllegalStateError, KafkaError, WakeupError
from tests.aio.conftest import play


def names_of(cls: type[object]) -> set[str]:
    return {name for name, _ in inspect.getmembers(cls, callable) if not name.startswith("_")}


def test_it_has_every_method_of_the_blocking_one_with_its_text() -> None:
    assert names_of(Admin) == names_of(ottla.Admin)
    for name in names_of(Admin) - {"close"}:
        assert inspect.getdoc(getattr(Admin, name)) == inspect.getdoc(getattr(ottla.Admin, name)), name


def test_other_tasks_run_while_a_request_is_awaited(group_broker: Broker, group_id: str) -> None:
    async def story() -> None:
        async with Admin(group_broker.client_settings()) as admin:
            await admin.create_topics([NewTopic(group_id, num_partitions=2)])
            topics, described = await asyncio.gather(admin.list_topics(), admin.describe_topics([group_id]))
            assert group_id in topics
            assert len(described[group_id].partitions) == 2
            await admin.delete_topics([group_id])
            with pytest.raises(KafkaError, match=group_id):
                await admin.describe_topics([group_id])

    play(story)


def test_an_unanswered_call_blocks_no_other_and_ends_when_the_client_closes() -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            admin = Admin(bootstrap_servers=f"127.0.0.1:{silent.getsockname()[1]}")
            waiting = asyncio.ensure_future(admin.list_topics())
            while not any(each.name.startswith("ottla-aio-admin") for each in threading.enumerate()):
                await asyncio.sleep(0)
            peer, _ = await asyncio.to_thread(silent.accept)
            with peer:
                assert not waiting.done()
                await admin.close()
                with pytest.raises(WakeupError):
                    await waiting
            with pytest.raises(IllegalStateError, match="closed; make a new one"):
                await admin.list_topics()

    play(story)
