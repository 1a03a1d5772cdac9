"""The console over HTTP: its files, and questions with answers in JSON.

No page is made here: the one that is there fills itself with text, never with markup, whatever a record holds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ottla.console.cluster import STARTS, Cluster, Start
from ottla.console.guard import Door, refusal
from ottla.console.pipelines import Pipelines
from ottla.console.record_view import Wanted
from ottla.console.touring import Tour
from ottla.console.traced import NotTracedError, Traced
from ottla.errors import OttlaError
from ottla.extras import extra
from ottla.model import EARLIEST, LATEST, TopicPartition

with extra("console"):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

STATIC = Path(__file__).parent / "static"
LIVE_SECONDS = 1.0
"""How often a page that looks at a group is told how it stands."""
MOST_RECORDS = 500
MOST_BODY_BYTES = 2 * 1024 * 1024
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
MOMENTS = {"earliest": EARLIEST, "latest": LATEST}

Ask = Callable[[Cluster, Mapping[str, Any]], Any]


class SenselessError(OttlaError):
    """What was asked cannot be meant."""


def app(
    cluster: Cluster, door: Door, traced: Traced, tour: Tour, pipelines: Pipelines | None = None, lifespan: Any = None
) -> Any:
    """The console of a cluster, of the clients that are traced beside it, of a tour, and of pipelines."""
    asks: dict[str, tuple[str, Ask]] = {
        "overview": ("GET", lambda c, _: c.overview()),
        "topics": ("GET", lambda c, q: c.topics(q.get("text", ""), whole(q, "from", 0))),
        "topic": ("GET", lambda c, q: c.topic(text(q, "name"))),
        "records": ("GET", records),
        "brokers": ("GET", lambda c, _: c.brokers()),
        "transactions": ("GET", lambda c, q: c.transactions(q.get("text", ""))),
        "transaction": ("GET", lambda c, q: c.transaction(text(q, "name"))),
        "clients": ("GET", lambda c, q: c.clients(q.get("text", ""))),
        "client": ("GET", lambda c, q: c.client(text(q, "instance"))),
        "fence": ("POST", lambda c, q: c.fence(text(q, "name"))),
        "traced": ("GET", lambda *_: traced.clients()),
        "groups": ("GET", lambda c, _: c.groups()),
        "group": ("GET", lambda c, q: c.group(text(q, "name"))),
        "preview-reset": ("GET", lambda c, q: c.preview_reset(text(q, "group"), text(q, "topic"), moment(q))),
        "create-topic": ("POST", create_topic),
        "delete-topic": ("POST", lambda c, q: c.delete_topic(text(q, "name"))),
        "set-config": ("POST", set_config),
        "produce": ("POST", produce),
        "reset-offsets": ("POST", reset_offsets),
        "pipelines": ("GET", lambda *_: None if pipelines is None else pipelines.status()),
        "resend": ("POST", lambda _, q: shown(pipelines).resend(text(q, "name"))),
        "pause": ("POST", lambda _, q: shown(pipelines).pause(text(q, "name"))),
        "resume": ("POST", lambda _, q: shown(pipelines).resume(text(q, "name"))),
    }
    routes = [Route(f"/api/{name}", answer(cluster, ask), methods=[verb]) for name, (verb, ask) in asks.items()]
    live = Route("/api/live/group", partial(live_view, cluster, cluster.group), methods=["GET"])
    running = Route(
        "/api/live/pipelines", partial(live_view, cluster, lambda _: pipelines and pipelines.status()), methods=["GET"]
    )
    looking = Route("/api/live/traced", partial(live_traced, lambda: traced), methods=["GET"])
    page = Route("/", lambda _: FileResponse(STATIC / "index.html"))
    static = Mount("/static", StaticFiles(directory=STATIC))
    made = Starlette(routes=[*routes, *tour_routes(tour), live, running, looking, page, static], lifespan=lifespan)
    made.add_middleware(Guarded, door=door)
    return made


def tour_routes(tour: Tour) -> list[Any]:
    """The chapters, one that plays, and who can be looked at in it."""

    async def chapters(_: Any) -> Any:
        return JSONResponse({"chapters": await tour.chapters()})

    async def clients(_: Any) -> Any:
        return JSONResponse(await run_in_threadpool(tour.clients.clients))

    async def play(request: Any) -> Any:
        return await obeyed(request, lambda given: tour.play(given.get("name")))

    async def go_on(request: Any) -> Any:
        async def act(_: Mapping[str, Any]) -> None:
            tour.go_on()

        return await obeyed(request, act)

    async def told(_: Any) -> Any:
        events = (f"data: {line}\n\n" async for line in tour.lines())
        return StreamingResponse(events, media_type="text/event-stream")

    return [
        Route("/api/tour", chapters, methods=["GET"]),
        Route("/api/tour-clients", clients, methods=["GET"]),
        Route("/api/tour-play", play, methods=["POST"]),
        Route("/api/tour-next", go_on, methods=["POST"]),
        Route("/api/live/tour", told, methods=["GET"]),
        Route("/api/live/tour-client", partial(live_traced, lambda: tour.clients), methods=["GET"]),
    ]


async def obeyed(request: Any, act: Callable[[Mapping[str, Any]], Awaitable[None]]) -> Any:
    """An order to the tour; what cannot be meant is a sentence."""
    try:
        await act(await body(request))
    except OttlaError as error:
        return sentence(str(error), 400)
    return JSONResponse(None)


class Guarded:
    """Before every answer the door, on every answer the headers."""

    def __init__(self, inner: Any, door: Door) -> None:
        self.inner = inner
        self.door = door

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = refusal(self.door, scope["method"], scope["path"], headers)
        answering = self.inner if refused is None else sentence(refused.sentence, refused.status)
        await answering(scope, receive, with_headers)


def sentence(told: str, status: int) -> Any:
    return JSONResponse({"error": told}, status)


def answer(cluster: Cluster, ask: Ask) -> Callable[[Request], Awaitable[Response]]:
    """A question put to the cluster in a thread; what goes wrong is a sentence."""

    async def answered(request: Any) -> Any:
        try:
            given = request.query_params if request.method == "GET" else await body(request)
            return JSONResponse(await run_in_threadpool(ask, cluster, given))
        except SenselessError as error:
            return sentence(str(error), 400)
        except OttlaError as error:
            return sentence(cluster.said(error), 502)

    return answered


async def body(request: Any) -> Mapping[str, Any]:
    """The JSON object of a request."""
    pieces = bytearray()
    async for piece in request.stream():
        pieces += piece
        if len(pieces) > MOST_BODY_BYTES:
            raise SenselessError(
                f"the request is longer than {MOST_BODY_BYTES} bytes; use ottla produce for what is large"
            )
    try:
        given = json.loads(pieces)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise SenselessError("the request has to be a JSON object")
    return given


def shown(pipelines: Pipelines | None) -> Pipelines:
    """Those that can be given orders."""
    if pipelines is None:
        raise SenselessError("this console shows no pipelines; start it with --pipelines FILE|FOLDER")
    return pipelines


async def live_view(cluster: Cluster, look: Callable[[str], Any], request: Any) -> Any:
    """How what has a name stands, pushed as server-sent events for as long as somebody looks."""
    name = request.query_params.get("name", "")

    async def events() -> AsyncIterator[str]:
        while not await request.is_disconnected():
            try:
                view: Any = await run_in_threadpool(look, name)
            except OttlaError as error:
                view = {"error": cluster.said(error)}
            yield f"data: {json.dumps(view)}\n\n"
            await asyncio.sleep(LIVE_SECONDS)

    return StreamingResponse(events(), media_type="text/event-stream")


async def live_traced(traced: Callable[[], Traced], request: Any) -> Any:
    """What a traced client tells, pushed on to the page until one of them ends."""
    name = request.query_params.get("name", "")

    async def events() -> AsyncIterator[str]:
        try:
            async for line in traced().lines(name):
                yield f"data: {line}\n\n"
            yield 'data: {"ended": true}\n\n'
        except NotTracedError as error:
            yield f"data: {json.dumps({'error': str(error)})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


def text(given: Mapping[str, Any], name: str) -> str:
    """A field that has to be there."""
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise SenselessError(f"{name} {value!r} must be a text that is not empty")
    return value


def whole(given: Mapping[str, Any], name: str, otherwise: int) -> int:
    """A field that is a whole number from 0 on, or its default."""
    value = given.get(name)
    if value in (None, ""):
        return otherwise
    if not str(value).isascii() or not str(value).isdecimal() or len(str(value)) > 18:
        raise SenselessError(f"{name} {value!r} must be a whole number from 0 on")
    return int(str(value))


def number_or_none(given: Mapping[str, Any], name: str) -> int | None:
    number = whole(given, name, -1)
    return None if number < 0 else number


def records(cluster: Cluster, given: Mapping[str, Any]) -> Any:
    how = given.get("start", "latest")
    if how not in STARTS:
        raise SenselessError(f"start {how!r} must be one of {', '.join(STARTS)}")
    start: Start = (how, whole(given, "at", 0))
    wanted = Wanted(given.get("key", ""), given.get("text", ""))
    most = max(1, min(whole(given, "most", 50), MOST_RECORDS))
    return cluster.records(text(given, "topic"), number_or_none(given, "partition"), start, wanted, most)


def create_topic(cluster: Cluster, given: Mapping[str, Any]) -> None:
    configs = given.get("configs", {})
    if not isinstance(configs, dict) or not all(isinstance(value, str) for value in configs.values()):
        raise SenselessError(f"configs {configs!r} must be an object of texts")
    partitions, replicas = (whole(given, name, -1) for name in ("partitions", "replicas"))
    cluster.create_topic(text(given, "name"), partitions, replicas, configs)


def set_config(cluster: Cluster, given: Mapping[str, Any]) -> None:
    value = given.get("value")
    if value is not None and not isinstance(value, str):
        raise SenselessError(f"value {value!r} must be a text, or null for the default")
    cluster.set_config(text(given, "topic"), text(given, "name"), value)


def produce(cluster: Cluster, given: Mapping[str, Any]) -> Any:
    key, value = given.get("key"), given.get("value")
    for name, part in (("key", key), ("value", value)):
        if part is not None and not isinstance(part, str):
            raise SenselessError(f"{name} {part!r} must be a text, or null")
    return cluster.produce(text(given, "topic"), key, value, number_or_none(given, "partition"))


def reset_offsets(cluster: Cluster, given: Mapping[str, Any]) -> None:
    """Set the offsets that a preview has shown, by partition; the page does nothing else."""
    topic, offsets = text(given, "topic"), given.get("offsets")
    if not isinstance(offsets, dict) or not offsets:
        raise SenselessError(
            f"offsets {offsets!r} must be an object of partitions and their offsets; ask preview-reset first"
        )
    wanted = {}
    for partition in offsets:
        number = whole({"partition": partition}, "partition", 0)
        wanted[TopicPartition(topic, number)] = whole({"offset": offsets[partition]}, "offset", 0)
    cluster.reset_offsets(text(given, "group"), wanted)


def moment(given: Mapping[str, Any]) -> int:
    """Return the time to which offsets are reset, in ms since 1970, or EARLIEST or LATEST."""
    to = given.get("to")
    when = MOMENTS[to] if isinstance(to, str) and to in MOMENTS else whole(given, "to", -1)
    if when == -1 and to != "latest":
        raise SenselessError(f"to {to!r} must be earliest, latest or a time in milliseconds")
    return when
