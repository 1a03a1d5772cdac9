"""Read the metrics pages of brokers over HTTP, at the addresses in their configs (`metrics.listen`)."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from ottla.client.admin import Admin, ConfigResource
from ottla.client.network.bootstrap import parse_address
from ottla.errors import OttlaError
from ottla.model import Node

SETTING = "metrics.listen"
PATIENCE = 3.0
MOST_BYTES = 64 * 1024 * 1024
AT_ONCE = 8
ANYWHERE = ("", "0.0.0.0", "::")
Place = tuple[str, int]


def pages_of(admin: Admin) -> tuple[dict[int, str], list[str]]:
    """Return the text of each broker's page by broker id, and the errors of pages that could not be read."""
    nodes = {ConfigResource("broker", str(node.node_id)): node for node in admin.describe_cluster().nodes}
    pages: dict[int, str] = {}
    wrong = []
    places = {
        nodes[resource].node_id: place_of(entry.value, nodes[resource])
        for resource, configs in admin.describe_configs(nodes).items()
        if (entry := configs.get(SETTING)) is not None and entry.value
    }
    with ThreadPoolExecutor(AT_ONCE, "ottla-console-metrics") as pool:
        reading = {number: pool.submit(read_page, place) for number, place in places.items()}
    for number, page in reading.items():
        try:
            pages[number] = page.result()
        except (OSError, http.client.HTTPException, OttlaError) as error:
            host, port = places[number]
            wrong.append(f"the metrics of broker {number} cannot be read at {host}:{port}: {error}")
    return pages, wrong


def place_of(listen: str, node: Node) -> Place:
    """Return the address of a page; a wildcard address is replaced by the broker's host."""
    host, port = parse_address(listen)
    return (node.host if host in ANYWHERE else host), port


def read_page(place: Place) -> str:
    """Return the text of a page. Only the address of the broker's config is requested, without redirects."""
    host, port = place
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES + 1)
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise OSError(f"HTTP status {answer.status}")
    if len(body) > MOST_BYTES:
        raise OSError(f"the page has more than {MOST_BYTES} bytes")
    return body.decode("utf-8", "replace")


def subscriptions_of(admin: Admin) -> Mapping[str, Mapping[str, str | None]]:
    """Return the metrics subscriptions by name."""
    resources = admin.list_config_resources(["client-metrics"])
    described = admin.describe_configs(resources) if resources else {}
    return {
        resource.name: {name: entry.value for name, entry in configs.items()} for resource, configs in described.items()
    }
