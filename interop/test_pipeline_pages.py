"""Web pages in a real Chromium cannot control a pipeline through the REST interface of a running manager."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ottla.pipelines.file.reading import read_pipelines
from ottla.pipelines.manager.control import Remote, serve_control
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.session import end_session, session_for
from tests.patience import eventually
from tools.chromium import chromium

LONG = 120.0
SENT = """
async ([address, method, path, body]) => {
    try {
        await fetch(`http://${address}${path}`, {method, mode: "no-cors", body});
        return "sent";
    } catch (error) {
        return String(error);
    }
}
"""


@contextmanager
def running_manager(folder: Path) -> Iterator[Remote]:
    """A manager that runs a pipeline from a table in Spark to files."""
    file = folder / "p.yaml"
    counts = {"source": {"type": "rate"}, "sink": {"type": "files", "format": "json", "path": "out"}}
    file.write_text(json.dumps({"settings": {"master": "local[1]"}, "pipelines": {"counts": counts}}), encoding="utf-8")
    reads = read_pipelines(file)
    spark = session_for(reads)
    try:
        manager = Manager(reads, spark)
        with serve_control(manager) as address:
            thread = threading.Thread(target=manager.run)
            thread.start()
            try:
                yield Remote(address)
            finally:
                manager.stop()
                thread.join()
    finally:
        end_session(spark)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the files of a folder as a web site, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def state_of(remote: Remote) -> str:
    return str(remote.request_connector("GET", "counts", "status")["connector"]["state"])


@pytest.mark.xdist_group("chromium")
def test_no_page_of_a_browser_controls_a_pipeline(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>a page</title>", encoding="utf-8")
    with served(site) as url, running_manager(tmp_path) as remote, chromium() as browser:
        eventually(lambda: state_of(remote) == "RUNNING", LONG)
        stop = f"PUT /connectors/counts/stop HTTP/1.1\r\nHost: {remote.address}\r\nContent-Length: 0\r\n\r\n"
        reset = f"DELETE /connectors/counts/offsets HTTP/1.1\r\nHost: {remote.address}\r\n\r\n"
        page = browser.new_page()
        page.goto(url)
        for path in ("/connectors", "/connectors/counts/restart", "/"):
            # Chromium sends this. The body contains two requests as a local program would send them.
            page.evaluate(SENT, [remote.address, "POST", path, stop + reset])
        page.evaluate(SENT, [remote.address, "POST", "/connectors/counts/restart", ""])
        own = browser.new_page()  # pages of the interface's own address may send requests
        assert own.goto(f"http://{remote.address}/connectors/counts/status").status == 200  # type: ignore[union-attr]
        assert state_of(remote) == "RUNNING"
        assert not list((tmp_path / "state" / "counts").glob("checkpoint.*"))
        assert not (tmp_path / "state" / "counts" / "target.json").exists()
