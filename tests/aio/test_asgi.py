"""Clients in the event loop of an ASGI server, as FastAPI and Starlette applications have them."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import ottla.aio
from ottla import Broker
from ottla.free_ports import free_port
from tests.aio.conftest import play


def test_a_request_is_answered_with_the_record_that_it_sent(group_broker: Broker, shared_topic: str) -> None:
    servers = group_broker.bootstrap_servers

    @asynccontextmanager
    async def clients(application: Starlette) -> AsyncIterator[None]:
        async with (
            ottla.aio.Producer(bootstrap_servers=servers) as producer,
            ottla.aio.Consumer(bootstrap_servers=servers, group_id="asgi", auto_offset_reset="earliest") as consumer,
        ):
            consumer.subscribe([shared_topic])
            application.state.producer, application.state.consumer = producer, consumer
            yield

    async def echo(request: Request) -> PlainTextResponse:
        state = request.app.state
        await state.producer.send(shared_topic, request.query_params["text"].encode())
        async for record in state.consumer:
            return PlainTextResponse(record.value.decode())
        raise AssertionError("the loop over a consumer does not end")

    async def story() -> str:
        application = Starlette(routes=[Route("/", echo)], lifespan=clients)
        port = free_port()
        server = uvicorn.Server(uvicorn.Config(application, port=port, log_level="error"))
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0)
        answer = await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/?text=hello").read())
        server.should_exit = True
        await serving
        return str(answer, "ascii")

    assert play(story) == "hello"
