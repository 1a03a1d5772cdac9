"""A registry of a few lines that speaks Confluent's REST interface, for clients and serializers.

It keeps schemas in memory and decides nothing about compatibility.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5


class SmallRegistry:
    """Schemas by id and by subject, and the requests that were received."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.failures: list[int] = []
        """Statuses with which the next requests are answered."""
        self.url = ""
        self.differences: list[str] = []
        """The answer to the next checks of compatibility."""

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:  # noqa: C901
        if self.failures:
            status = self.failures.pop(0)
            return status, {"error_code": status * 100, "message": "planted"}
        parts = [unquote(part) for part in path.strip("/").split("/")]
        match method, parts:
            case "POST", ["subjects", subject, "versions"]:
                return self.register(subject, body)
            case "POST", ["subjects", subject]:
                number = self.number_of(body)
                versions = self.subjects.get(subject)
                if versions is None:
                    return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
                if number not in versions:
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, self.full(subject, versions.index(number) + 1)
            case "GET", ["schemas", "ids", number]:
                if not 0 < int(number) <= len(self.schemas):
                    return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
                return 200, {**self.schemas[int(number) - 1], "guid": self.guid(int(number))}
            case "GET", ["schemas", "guids", guid]:
                for number in range(1, len(self.schemas) + 1):
                    if self.guid(number) == guid:
                        return 200, self.schemas[number - 1]
                return 404, {"error_code": 40403, "message": f"Schema {guid} not found"}
            case "GET", ["schemas", "types"]:
                return 200, ["JSON", "PROTOBUF", "AVRO"]
            case "GET", ["subjects"]:
                return 200, sorted(self.subjects)
            case "GET", ["subjects", subject, "versions"] if subject in self.subjects:
                return 200, list(range(1, len(self.subjects[subject]) + 1))
            case "GET", ["subjects", subject, "versions"]:
                return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
            case "DELETE", ["subjects", subject] if subject in self.subjects:
                return 200, list(range(1, len(self.subjects.pop(subject)) + 1))
            case "POST", ["compatibility", "subjects", _, "versions"]:
                return 200, {"is_compatible": not self.differences, "messages": self.differences}
            case "GET", ["config", *_]:
                return 200, {"compatibilityLevel": "BACKWARD"}
            case "GET", ["subjects", subject, "versions", version]:
                versions = self.subjects.get(subject, [])
                at = len(versions) if version == "latest" else int(version)
                if not 0 < at <= len(versions):
                    return 404, {"error_code": 40402, "message": f"Version {version} not found."}
                return 200, self.full(subject, at)
        return 404, {"error_code": 404, "message": f"HTTP 404 Not Found: {method} {path}"}

    def number_of(self, body: Any) -> int:
        kept = {"schemaType": "AVRO", **{name: part for name, part in body.items() if part}}
        if kept not in self.schemas:
            self.schemas.append(kept)
        return self.schemas.index(kept) + 1

    def guid(self, number: int) -> str:
        return str(uuid5(NAMESPACE_URL, str(number)))

    def register(self, subject: str, body: Any) -> tuple[int, Any]:
        number = self.number_of(body)
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return 200, {"id": number, "guid": self.guid(number)}

    def full(self, subject: str, version: int) -> Any:
        number = self.subjects[subject][version - 1]
        return {
            "subject": subject,
            "version": version,
            "id": number,
            "guid": self.guid(number),
            **self.schemas[number - 1],
        }


@contextmanager
def small_registry() -> Iterator[SmallRegistry]:
    """Serve a registry on a free port."""
    registry = SmallRegistry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(length)
            parts = urlsplit(self.path)
            registry.requests.append((self.command, self.path, dict(self.headers)))
            body = json.loads(data) if data[:1] in (b"{", b"[") else None
            status, answer = registry.answer(self.command, parts.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = respond

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
