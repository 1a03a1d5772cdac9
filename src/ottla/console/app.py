"""The HTTP interface of the console: static files, and a JSON API.

The server renders no HTML: the static page inserts all values as text, never as markup.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.console.cluster import STARTS, ConsoleCluster, Start
from ottla.console.guard import ConsoleAccess, check_access
from ottla.console.pipelines import Pipelines
from ottla.console.record_view import RecordCondition
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

if TYPE_CHECKING:
    from ottla.console.schema_registry import ConsoleRegistry

STATIC = Path(__file__).parent / "static"
LIVE_SECONDS = 1.0
"""The interval at which a live view is updated."""
MOST_RECORDS = 500
MOST_BODY_BYTES = 2 * 1024 * 1024
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
MOMENTS = {"earliest": EARLIEST, "latest": LATEST}

Query = Callable[[ConsoleCluster, Mapping[str, Any]], Any]


class InvalidRequestError(OttlaError):
    """A request with invalid parameters."""


def app(
    cluster: ConsoleCluster,
    door: ConsoleAccess,
    traced: Traced,
    tour: Tour,
    pipelines: Pipelines | None = None,
    lifespan: Any = None,
    registry: ConsoleRegistry | None = None,
) -> Any:
    """Return the ASGI application of the console for a cluster, traced clients, the tour, pipelines, and a registry."""
    queries: dict[str, tuple[str, Query]] = {
        "overview": ("GET", lambda c, _: c.overview()),
        "topics": ("GET", lambda c, q: c.topics(q.get("text", ""), whole_parameter(q, "from", 0))),
        "topic": ("GET", lambda c, q: c.topic(text_parameter(q, "name"))),
        "records": ("GET", lambda c, q: records(c, q, registry)),
        "brokers": ("GET", lambda c, _: c.brokers()),
        "transactions": ("GET", lambda c, q: c.transactions(q.get("text", ""))),
        "transaction": ("GET", lambda c, q: c.transaction(text_parameter(q, "name"))),
        "clients": ("GET", lambda c, q: c.clients(q.get("text", ""))),
        "client": ("GET", lambda c, q: c.client(text_parameter(q, "instance"))),
        "fence": ("POST", lambda c, q: c.fence(text_parameter(q, "name"))),
        "traced": ("GET", lambda *_: traced.clients()),
        "groups": ("GET", lambda c, _: c.groups()),
        "group": ("GET", lambda c, q: c.group(text_parameter(q, "name"))),
        "preview-reset": (
            "GET",
            lambda c, q: c.preview_reset(text_parameter(q, "group"), text_parameter(q, "topic"), moment(q)),
        ),
        "create-topic": ("POST", create_topic),
        "delete-topic": ("POST", lambda c, q: c.delete_topic(text_parameter(q, "name"))),
        "set-config": ("POST", set_config),
        "produce": ("POST", produce),
        "reset-offsets": ("POST", reset_offsets),
        "subjects": (
            "GET",
            lambda _, q: registry and registry.subjects(q.get("text", ""), whole_parameter(q, "from", 0)),
        ),
        "subject": (
            "GET",
            lambda _, q: required_registry(registry).subject(text_parameter(q, "name"), number_parameter(q, "version")),
        ),
        "check-schema": (
            "POST",
            lambda _, q: required_registry(registry).check(text_parameter(q, "name"), text_parameter(q, "schema")),
        ),
        "pipelines": ("GET", lambda *_: None if pipelines is None else pipelines.status()),
        "resend": ("POST", lambda _, q: required_pipelines(pipelines).resend(text_parameter(q, "name"))),
        "pause": ("POST", lambda _, q: required_pipelines(pipelines).pause(text_parameter(q, "name"))),
        "resume": ("POST", lambda _, q: required_pipelines(pipelines).resume(text_parameter(q, "name"))),
    }
    routes = [
        Route(f"/api/{name}", make_endpoint(cluster, query), methods=[verb]) for name, (verb, query) in queries.items()
    ]
    live = Route("/api/live/group", partial(live_view, cluster, cluster.group), methods=["GET"])
    running = Route(
        "/api/live/pipelines", partial(live_view, cluster, lambda _: pipelines and pipelines.status()), methods=["GET"]
    )
    looking = Route("/api/live/traced", partial(live_traced, lambda: traced), methods=["GET"])
    page = Route("/", lambda _: FileResponse(STATIC / "index.html"))
    static = Mount("/static", StaticFiles(directory=STATIC))
    made = Starlette(routes=[*routes, *tour_routes(tour), live, running, looking, page, static], lifespan=lifespan)
    made.add_middleware(GuardedApp, door=door)
    return made


def tour_routes(tour: Tour) -> list[Any]:
    """Return the routes of the tour: its chapters, the playing one, and the clients of that chapter."""

    async def chapters(_: Any) -> Any:
        return JSONResponse({"chapters": await tour.chapters()})

    async def clients(_: Any) -> Any:
        return JSONResponse(await run_in_threadpool(tour.clients.clients))

    async def play(request: Any) -> Any:
        return await run_action(request, lambda given: tour.play(given.get("name")))

    async def continue_chapter(request: Any) -> Any:
        async def act(_: Mapping[str, Any]) -> None:
            tour.continue_chapter()

        return await run_action(request, act)

    async def lines_of_tour(_: Any) -> Any:
        events = (f"data: {line}\n\n" async for line in tour.lines())
        return StreamingResponse(events, media_type="text/event-stream")

    return [
        Route("/api/tour", chapters, methods=["GET"]),
        Route("/api/tour-clients", clients, methods=["GET"]),
        Route("/api/tour-play", play, methods=["POST"]),
        Route("/api/tour-next", continue_chapter, methods=["POST"]),
        Route("/api/live/tour", lines_of_tour, methods=["GET"]),
        Route("/api/live/tour-client", partial(live_traced, lambda: tour.clients), methods=["GET"]),
    ]


async def run_action(request: Any, act: Callable[[Mapping[str, Any]], Awaitable[None]]) -> Any:
    """Execute a command for the tour; an OttlaError becomes a response with its message."""
    try:
        await act(await body(request))
    except OttlaError as error:
        return sentence(str(error), 400)
    return JSONResponse(None)


class GuardedApp:
    """Middleware that checks each request against the door and adds the security headers to each response."""

    def __init__(self, inner: Any, door: ConsoleAccess) -> None:
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
        refused = check_access(self.door, scope["method"], scope["path"], headers)
        answering = self.inner if refused is None else sentence(refused.sentence, refused.status)
        await answering(scope, receive, with_headers)


def sentence(message: str, status: int) -> Any:
    return JSONResponse({"error": message}, status)


def make_endpoint(cluster: ConsoleCluster, query: Query) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint for a query, which runs in a thread; an OttlaError becomes a response with its message."""

    async def respond(request: Any) -> Any:
        try:
            given = request.query_params if request.method == "GET" else await body(request)
            return JSONResponse(await run_in_threadpool(query, cluster, given))
        except InvalidRequestError as error:
            return sentence(str(error), 400)
        except OttlaError as error:
            return sentence(cluster.message_for(error), 502)

    return respond


async def body(request: Any) -> Mapping[str, Any]:
    """Read the JSON object of a request."""
    pieces = bytearray()
    async for piece in request.stream():
        pieces += piece
        if len(pieces) > MOST_BODY_BYTES:
            raise InvalidRequestError(
                f"the request is longer than {MOST_BODY_BYTES} bytes; use ottla produce for large records"
            )
    try:
        given = json.loads(pieces)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidRequestError("the request must be a JSON object")
    return given


def required_pipelines(pipelines: Pipelines | None) -> Pipelines:
    """Return the pipelines; raise SenselessError if the console was started without them."""
    if pipelines is None:
        raise InvalidRequestError("this console shows no pipelines; start it with --pipelines FILE|FOLDER")
    return pipelines


def required_registry(registry: ConsoleRegistry | None) -> ConsoleRegistry:
    """Return the registry; raise InvalidRequestError if the console was started without one."""
    if registry is None:
        raise InvalidRequestError("this console shows no schemas; start it with --registry URL")
    return registry


async def live_view(cluster: ConsoleCluster, look: Callable[[str], Any], request: Any) -> Any:
    """Stream a view as server-sent events until the browser disconnects."""
    name = request.query_params.get("name", "")

    async def events() -> AsyncIterator[str]:
        while not await request.is_disconnected():
            try:
                view: Any = await run_in_threadpool(look, name)
            except OttlaError as error:
                view = {"error": cluster.message_for(error)}
            yield f"data: {json.dumps(view)}\n\n"
            await asyncio.sleep(LIVE_SECONDS)

    return StreamingResponse(events(), media_type="text/event-stream")


async def live_traced(traced: Callable[[], Traced], request: Any) -> Any:
    """Stream the frames of a traced client to the page until one of them closes."""
    name = request.query_params.get("name", "")

    async def events() -> AsyncIterator[str]:
        try:
            async for line in traced().lines(name):
                yield f"data: {line}\n\n"
            yield 'data: {"ended": true}\n\n'
        except NotTracedError as error:
            yield f"data: {json.dumps({'error': str(error)})}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


def text_parameter(given: Mapping[str, Any], name: str) -> str:
    """Return a mandatory text field."""
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidRequestError(f"{name} {value!r} must be a non-empty text")
    return value


def whole_parameter(given: Mapping[str, Any], name: str, otherwise: int) -> int:
    """Return an integer field that is at least 0, or its default."""
    value = given.get(name)
    if value in (None, ""):
        return otherwise
    if not str(value).isascii() or not str(value).isdecimal() or len(str(value)) > 18:
        raise InvalidRequestError(f"{name} {value!r} must be a whole number, at least 0")
    return int(str(value))


def number_parameter(given: Mapping[str, Any], name: str) -> int | None:
    number = whole_parameter(given, name, -1)
    return None if number < 0 else number


def records(cluster: ConsoleCluster, given: Mapping[str, Any], registry: ConsoleRegistry | None) -> Any:
    how = given.get("start", "latest")
    if how not in STARTS:
        raise InvalidRequestError(f"start {how!r} must be one of {', '.join(STARTS)}")
    start: Start = (how, whole_parameter(given, "at", 0))
    wanted = RecordCondition(given.get("key", ""), given.get("text", ""))
    most = max(1, min(whole_parameter(given, "most", 50), MOST_RECORDS))
    values = None if registry is None else registry.values()
    topic, partition = text_parameter(given, "topic"), number_parameter(given, "partition")
    return cluster.records(topic, partition, start, wanted, most, values)


def create_topic(cluster: ConsoleCluster, given: Mapping[str, Any]) -> None:
    configs = given.get("configs", {})
    if not isinstance(configs, dict) or not all(isinstance(value, str) for value in configs.values()):
        raise InvalidRequestError(f"configs {configs!r} must be an object of texts")
    partitions, replicas = (whole_parameter(given, name, -1) for name in ("partitions", "replicas"))
    cluster.create_topic(text_parameter(given, "name"), partitions, replicas, configs)


def set_config(cluster: ConsoleCluster, given: Mapping[str, Any]) -> None:
    value = given.get("value")
    if value is not None and not isinstance(value, str):
        raise InvalidRequestError(f"value {value!r} must be a text, or null for the default")
    cluster.set_config(text_parameter(given, "topic"), text_parameter(given, "name"), value)


def produce(cluster: ConsoleCluster, given: Mapping[str, Any]) -> Any:
    key, value = given.get("key"), given.get("value")
    for name, part in (("key", key), ("value", value)):
        if part is not None and not isinstance(part, str):
            raise InvalidRequestError(f"{name} {part!r} must be a text, or null")
    return cluster.produce(text_parameter(given, "topic"), key, value, number_parameter(given, "partition"))


def reset_offsets(cluster: ConsoleCluster, given: Mapping[str, Any]) -> None:
    """Commit the offsets that a preview returned, by partition."""
    topic, offsets = text_parameter(given, "topic"), given.get("offsets")
    if not isinstance(offsets, dict) or not offsets:
        raise InvalidRequestError(
            f"offsets {offsets!r} must be an object of partitions and their offsets; request preview-reset first"
        )
    wanted = {}
    for partition in offsets:
        number = whole_parameter({"partition": partition}, "partition", 0)
        wanted[TopicPartition(topic, number)] = whole_parameter({"offset": offsets[partition]}, "offset", 0)
    cluster.reset_offsets(text_parameter(given, "group"), wanted)


def moment(given: Mapping[str, Any]) -> int:
    """Return the time to which offsets are reset, in ms since 1970, or EARLIEST or LATEST."""
    to = given.get("to")
    when = MOMENTS[to] if isinstance(to, str) and to in MOMENTS else whole_parameter(given, "to", -1)
    if when == -1 and to != "latest":
        raise InvalidRequestError(f"to {to!r} must be earliest, latest or a time in milliseconds")
    return when
