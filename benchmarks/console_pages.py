"""Measure the console with 10,000 topics: from a request for a page in Chromium to its rows, and its HTTP requests."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import PIPE, Popen
from urllib.request import urlopen

from benchmarks.brokers import ottla_broker
from ottla import Admin, NewTopic
from tools.chromium import chromium, page_of

TOPICS, AT_ONCE = 10_000, 1_000
ROUNDS = 11
AIM_SECONDS = 0.3
PAGES = {"overview": ("Overview", ".figures"), "topics": ("Topics", "tbody tr"), "brokers": ("Brokers", "tbody tr")}


@contextmanager
def console_of(bootstrap: str) -> Iterator[str]:
    """Yield the address of a cluster's console, started by the command in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "ottla.cli.main",
        "console",
        "--bootstrap-server",
        bootstrap,
        "--listen",
        "127.0.0.1:0",
    ]
    with Popen(command, stdout=PIPE, text=True) as console:
        assert console.stdout is not None
        try:
            yield console.stdout.readline().removeprefix("ready ").strip() + "/"
        finally:
            console.terminate()


def print_progress(name: str, work: Callable[[], object]) -> None:
    """Run `work` repeatedly, and print the median."""
    spans = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        spans.append(time.perf_counter() - begin)
    print(f"{name}: {statistics.median(spans):.3f} s, {max(spans):.3f} at most (aim: ≤ {AIM_SECONDS})", flush=True)


def main() -> None:
    with ottla_broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        for first in range(0, TOPICS, AT_ONCE):
            admin.create_topics([NewTopic(f"t-{number:05}", 1) for number in range(first, first + AT_ONCE)])
        with console_of(broker.bootstrap) as url, chromium() as browser, page_of(browser, url) as page:
            for name in PAGES:
                print_progress(f"/api/{name}", lambda name=name: urlopen(f"{url}api/{name}").read())  # type: ignore[misc]
            for name, (heading, rows) in PAGES.items():

                def show(name: str = name, heading: str = heading, rows: str = rows) -> None:
                    page.evaluate("document.getElementById('page').replaceChildren()")
                    page.evaluate(f"location.hash = '#/{name}'; turn();")
                    page.locator("h1", has_text=heading).wait_for()
                    page.locator(rows).first.wait_for()

                print_progress(f"page {name}", show)


if __name__ == "__main__":
    main()
