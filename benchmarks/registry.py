"""`GET /schemas/ids/ID`: requests per second, latency, memory and the time of a start, of our registry and of another one.

python -m benchmarks.registry                               # ours alone
python -m benchmarks.registry --other 'karapace config.json' --other-url http://127.0.0.1:8081

The other registry is started by its command, and measured in turns with ours. Requests come from one process over kept
connections.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shlex
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from urllib.parse import urlsplit

import psutil

from ottla import Broker

CONNECTIONS = 4
SCHEMAS = 100
PATIENCE = 60.0


def start_ours(address: str) -> tuple[subprocess.Popen[str], str, float]:
    """Start `ottla registry`; return its process, its URL and the seconds until it was ready."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "ottla", "registry", "--bootstrap-server", address, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, f"http://{process.stdout.readline().split()[1]}", time.perf_counter() - began


def start_other(command: str, url: str) -> tuple[subprocess.Popen[str], str, float]:
    """Start another registry; return the seconds until it answers."""
    began = time.perf_counter()
    process = subprocess.Popen(shlex.split(command), text=True)
    while time.perf_counter() - began < PATIENCE:
        try:
            urllib.request.urlopen(f"{url}/subjects", timeout=1).read()
        except OSError:
            time.sleep(0.02)
        else:
            break
    return process, url, time.perf_counter() - began


def register_schemas(url: str) -> list[int]:
    """Register schemas and return their ids."""
    ids = []
    for number in range(SCHEMAS):
        fields = [{"name": f"field{each}", "type": ["null", "string"], "default": None} for each in range(10)]
        schema = json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
        body = json.dumps({"schema": schema}).encode()
        kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{url}/subjects/s{number}/versions", body, kind)
        ids.append(json.loads(urllib.request.urlopen(request, timeout=PATIENCE).read())["id"])
    return ids


def measure_requests(url: str, ids: list[int], seconds: float) -> float:
    """Return the requests per second over several connections."""
    counts = [0] * CONNECTIONS
    place = urlsplit(url).netloc
    end = time.perf_counter() + seconds

    def request_until_end(position: int) -> None:
        connection = http.client.HTTPConnection(place)
        while time.perf_counter() < end:
            connection.request("GET", f"/schemas/ids/{ids[counts[position] % len(ids)]}")
            connection.getresponse().read()
            counts[position] += 1
        connection.close()

    threads = [threading.Thread(target=request_until_end, args=(each,)) for each in range(CONNECTIONS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(counts) / seconds


def memory_of(process: subprocess.Popen[str]) -> float:
    """Return the resident memory of a process and its children in MiB."""
    root = psutil.Process(process.pid)
    return sum(each.memory_info().rss for each in (root, *root.children(recursive=True))) / (1 << 20)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--other", help="command that starts another registry")
    parser.add_argument("--other-url", default="http://127.0.0.1:8081")
    parser.add_argument("--bootstrap-server", help="a running broker; default: one of its own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    broker = None if given.bootstrap_server else Broker().start()
    address = given.bootstrap_server or (broker.bootstrap_servers if broker else "")
    sides = {"ottla": start_ours(address)}
    if given.other:
        sides["other"] = start_other(given.other, given.other_url)
    try:
        ids = {name: register_schemas(url) for name, (_, url, _) in sides.items()}
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(given.rounds):
            for name, (_, url, _) in sides.items():
                rates[name].append(measure_requests(url, ids[name], given.seconds))
        for name, (process, _, seconds) in sides.items():
            print(
                f"{name}: {statistics.median(rates[name]):.0f} requests/s, {memory_of(process):.0f} MiB, "
                f"ready after {seconds:.2f} s"
            )
        if len(sides) == 2:
            ratios = [own / other for own, other in zip(rates["ottla"], rates["other"], strict=True)]
            print(f"requests/s ottla / other: {statistics.median(ratios):.2f}")
    finally:
        for process, _, _ in sides.values():
            process.terminate()
            process.wait(10)
        if broker is not None:
            broker.close()


if __name__ == "__main__":
    main()
