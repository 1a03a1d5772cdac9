"""Every public method of the clients with every kind of wrong argument: one clear error, at once, that says what was wrong."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, aio
from ottla.client.admin import NewPartitions, UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.errors import IllegalStateError, KafkaTimeoutError, NoBrokersAvailableError, OttlaError
from ottla.protocol.errors import EncodeError
from tests.client.interface.wrong_arguments import ADMIN, CONSUMER, PRODUCER, Call, Methods, calls, made

HANGS = (KafkaTimeoutError, NoBrokersAvailableError)
STILL_ANSWERED = {
    *(
        "assignment",
        "metrics",
        "paused",
        "snapshot",
        "subscription",
        "topic_id",
        "trace",
        "wakeup",
        "close",
        "current_lag",
    ),
}
"""Methods that work after close; closing may be repeated."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with one topic, and clients that wait at most five seconds."""
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 1)])
        yield broker.bootstrap_servers


def faults(methods: Methods, call: Call, client: Any, run: Any) -> list[str]:
    """Return the wrong values of an argument that are accepted, or rejected without a clear error."""
    found = []
    for wrong in methods[call.method][call.argument].wrong:
        many, given = made(methods, call, wrong)
        try:
            message = repr(run(client, call.method, many, given))
        except HANGS as error:
            message = f"waited: {error}"
        except EncodeError as error:
            message = f"reached the codec: {error}"
        except (TypeError, ValueError, OttlaError) as error:
            if mentions_argument(str(error), call, wrong):
                continue
            message = f"{type(error).__name__}: {error}"
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
        found.append(f"{call.argument} = {wrong!r:.60}: {message}")
    return found


def mentions_argument(text: str, call: Call, wrong: Any) -> bool:
    """True if an error names the argument or its value."""
    if "object is not" in text or "unsupported operand" in text or "expected bytes" in text:
        return False  # Python's own, of a place deep inside
    words = [call.argument.strip("*"), call.argument.rstrip("s"), type(wrong).__name__, *leaves(wrong)]
    return any(re.search(rf"(?<!\w){re.escape(word[:40])}", text) for word in words)


def leaves(value: Any) -> Iterator[str]:
    """A value and those within it, as they are written."""
    yield repr(value)
    inner = value if isinstance(value, list | tuple) else []
    if isinstance(value, dict):
        inner = [*value, *value.values()]
    if isinstance(value, NewTopic | NewPartitions | UserScramCredentialDeletion | UserScramCredentialUpsertion):
        inner = list(vars(value).values())
    if isinstance(value, pa.Table):
        yield from value.column_names
    for each in inner:
        yield from leaves(each)


def at_once(client: Any, method: str, many: list[Any], given: dict[str, Any]) -> Any:
    """Make a call and wait for its result."""
    result = getattr(client, method)(*many, **given)
    return result.result(5) if hasattr(result, "result") else result


def consumer_for(call: Call | str, servers: str, face: type[Any] = Consumer) -> Any:
    """A consumer in a state in which the call is allowed."""
    consumer = face(bootstrap_servers=servers, group_id="g", default_api_timeout_ms=5000, enable_auto_commit=False)
    method = call.method if isinstance(call, Call) else call
    if method not in ("subscribe", "enforce_rebalance"):
        consumer.assign([("t", 0)])
    return consumer


@pytest.mark.parametrize("call", calls(ADMIN), ids=str)
def test_an_admin_raises_a_clear_error_for_a_wrong_argument(servers: str, call: Call) -> None:
    with Admin(bootstrap_servers=servers, default_api_timeout_ms=5000) as admin:
        assert faults(ADMIN, call, admin, at_once) == []


OF_BOTH_FACES = [call for call in calls(PRODUCER) if call.method != "take_over_transaction"]


def producer_for(servers: str, face: type[Any] = Producer) -> Any:
    """A producer with transactions, the name of each of its own."""
    return face(bootstrap_servers=servers, transactional_id=f"id-{uuid4()}", max_block_ms=5000)


@pytest.mark.parametrize("call", calls(PRODUCER), ids=str)
def test_a_producer_raises_a_clear_error_for_a_wrong_argument(servers: str, call: Call) -> None:
    with producer_for(servers) as producer:
        if call.method != "init_transactions":
            producer.init_transactions()
            producer.begin_transaction()
        assert faults(PRODUCER, call, producer, at_once) == []


@pytest.mark.parametrize("call", OF_BOTH_FACES, ids=str)
def test_an_asyncio_producer_raises_the_same_errors(servers: str, call: Call) -> None:
    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        producer = producer_for(servers, aio.Producer)
        try:
            if call.method != "init_transactions":
                await producer.init_transactions()
                producer.begin_transaction()
            return await loop.run_in_executor(None, faults, PRODUCER, call, producer, on(loop))
        finally:
            await producer.close()

    assert asyncio.run(story()) == []


@pytest.mark.parametrize("method", sorted(PRODUCER.keys() - {"close", "flush", "metrics", "snapshot"}))
def test_a_closed_producer_raises_that_it_is_closed(servers: str, method: str) -> None:
    producer = producer_for(servers)
    producer.close()
    many, given = made(PRODUCER, method)
    with pytest.raises(IllegalStateError, match="closed"):
        entered(at_once(producer, method, many, given))
    producer.close()


def entered(result: Any) -> None:
    """Enter a context manager."""
    if hasattr(result, "__enter__"):
        result.__enter__()


@pytest.mark.parametrize("call", calls(CONSUMER), ids=str)
def test_a_consumer_raises_a_clear_error_for_a_wrong_argument(servers: str, call: Call) -> None:
    with consumer_for(call, servers) as consumer:
        assert faults(CONSUMER, call, consumer, at_once) == []


@pytest.mark.parametrize("call", calls(CONSUMER), ids=str)
def test_an_asyncio_consumer_raises_the_same_errors(servers: str, call: Call) -> None:
    async def story() -> list[str]:
        loop = asyncio.get_running_loop()
        consumer = consumer_for(call, servers, aio.Consumer)
        try:
            return await loop.run_in_executor(None, faults, CONSUMER, call, consumer, on(loop))
        finally:
            await consumer.close()

    assert asyncio.run(story()) == []


def on(loop: asyncio.AbstractEventLoop) -> Any:
    """Makes calls on the loop from another thread."""

    async def made_there(client: Any, method: str, many: list[Any], given: dict[str, Any]) -> Any:
        result = getattr(client, method)(*many, **given)
        return await result if inspect.isawaitable(result) else result

    def run(*words: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(made_there(*words), loop).result(20)

    return run


@pytest.mark.parametrize(
    ("face", "methods"), [(Admin, ADMIN), (Consumer, CONSUMER), (aio.Consumer, CONSUMER), (Producer, PRODUCER)]
)
def test_no_method_is_left_out(face: type[Any], methods: Methods) -> None:
    public = {name: each for name, each in inspect.getmembers(face, callable) if not name.startswith("_")}
    assert set(methods) == set(public)
    for name, arguments in methods.items():
        taken = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters_of(public[name])]
        assert list(arguments) == taken, name


def parameters_of(method: Any) -> list[inspect.Parameter]:
    """The other arguments of a method."""
    return list(inspect.signature(method).parameters.values())[1:]


@pytest.mark.parametrize("method", sorted(ADMIN.keys() - {"close", "metrics"}))
def test_a_closed_admin_raises_that_it_is_closed(servers: str, method: str) -> None:
    admin = Admin(bootstrap_servers=servers)
    admin.close()
    many, given = made(ADMIN, method)
    with pytest.raises(IllegalStateError, match="closed"):
        at_once(admin, method, many, given)
    admin.close()


@pytest.mark.parametrize("method", sorted(CONSUMER.keys() - STILL_ANSWERED))
def test_a_closed_consumer_raises_that_it_is_closed(servers: str, method: str) -> None:
    consumer = consumer_for(method, servers)
    consumer.close()
    many, given = made(CONSUMER, method)
    with pytest.raises(IllegalStateError, match="closed"):
        at_once(consumer, method, many, given)
    consumer.close()
