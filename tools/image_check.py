"""Start the root file system of the image by its entry point, as a container engine does: the second half of `make image`.

Runs as root in a network namespace of its own, so that the image's ports are free.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from ottla import Consumer, Producer, TopicPartition

MANIFEST = Path(__file__).parent.parent / "packaging" / "kubernetes" / "three-nodes.yaml"
NODES = {f"ottla-{number}.ottla-nodes": f"127.0.0.{number + 10}" for number in range(3)}
"""The names of the pods, and an address for each in the place of a network."""
USER = "1000:1000"
START = "/opt/ottla/bin/start"
SECONDS = 60.0
NO_VARIABLES: Mapping[str, str] = {}
JAVA = {  # what testcontainers' module for Java sets, besides its script
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
}
JAVA_SCRIPT = (
    "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:9092,BROKER://localhost:9093; /etc/kafka/docker/run"
)


class Container:
    """A process of the image, as process 1 of a namespace."""

    def __init__(
        self, root: Path, *command: str, variables: Mapping[str, str] = NO_VARIABLES, own_data: bool = False
    ) -> None:
        inside = {"PATH": "/opt/ottla/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/var/lib/ottla", "LANG": "C.UTF-8"}
        given = [f"{name}={value}" for name, value in (inside | {"PYTHONUNBUFFERED": "1"} | dict(variables)).items()]
        namespace = ["unshare", "--pid", "--fork"]
        if own_data:  # as the manifests mount volumes
            folders = f"{root}/var/lib/ottla", f"{root}/etc/kafka"
            mounts = [f"mount -t tmpfs -o uid=1000,gid=1000 volume {folder}" for folder in folders]
            namespace = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]
        jail = ["chroot", f"--userspec={USER}", str(root), "env", "-i", "-C", "/var/lib/ottla", *given]
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [*namespace, *jail, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        )
        self.log = ""

    def wait_for(self, pattern: str) -> float:
        """Wait for a line of the log, and return the seconds since the start."""
        assert self._process.stdout is not None
        while not re.search(pattern, self.log):
            ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
            block = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not block:
                fail(f"no line {pattern!r} in the log:\n{self.log}")
            self.log += block.decode()
        return time.monotonic() - self.started

    def stop(self) -> int:
        """Send SIGTERM to process 1, and return its status."""
        self._send(signal.SIGTERM)
        return self._process.wait(SECONDS)

    def wait(self) -> int:
        """Wait for the end, and return the status."""
        return self._process.wait(SECONDS)

    def kill(self) -> None:
        """End all processes of the namespace, with its process 1."""
        if self._process.poll() is None:
            self._send(signal.SIGKILL)
        self._process.wait(SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _send(self, number: signal.Signals) -> None:
        """Send a signal to process 1 of the namespace, the child of `unshare`."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        while not (found := children.read_text().split()) and self._process.poll() is None:
            select.select([], [], [], 0.01)
        for each in found:
            os.kill(int(each), number)


@contextmanager
def container(
    root: Path, *command: str, variables: Mapping[str, str] = NO_VARIABLES, own_data: bool = False
) -> Iterator[Container]:
    started = Container(root, *command, variables=variables, own_data=own_data)
    try:
        yield started
    finally:
        started.kill()


def main() -> None:
    root = Path(sys.argv[1])
    set_loopback_up()
    hosts = [f"127.0.0.1 localhost {socket.gethostname()}", *(f"{host} {name}" for name, host in NODES.items())]
    (root / "etc/hosts").write_text("\n".join(hosts) + "\n", encoding="utf-8")  # which an engine writes
    check_defaults(root)
    check_java_module(root)
    check_python_module(root)
    check_servers(root)
    check_three_nodes(root)
    shutil.rmtree(root / "var/lib/ottla/data", ignore_errors=True)


def check_defaults(root: Path) -> None:
    """The default command serves a client, is healthy, stops at once, and has its records after a restart."""
    for count in (1, 2):
        with container(root, START, "run") as broker:
            seconds = broker.wait_for("Kafka Server started")
            exchange("127.0.0.1:9092", count)
            first = time.monotonic() - broker.started
            with container(root, "/opt/ottla/bin/health") as health:
                if health.wait():
                    fail("the health check fails while the broker serves clients")
            if status := broker.stop():
                fail(f"after SIGTERM the status is {status}, expected 0:\n{broker.log}")
        print(f"start {count}: ready after {seconds:.2f} s, first record read after {first:.2f} s", flush=True)
    with container(root, "/opt/ottla/bin/health") as health:
        if not health.wait():
            fail("the health check succeeds without a broker")
    empty(root)


def check_java_module(root: Path) -> None:
    """What testcontainers' module for Java does, also for Spring's and Quarkus' tests."""
    with container(root, "bash", "-c", JAVA_SCRIPT, variables=JAVA) as broker:
        seconds = broker.wait_for("Transitioning from RECOVERY to RUNNING")
        exchange("127.0.0.1:9092", 1)
    print(f"testcontainers for Java: ready after {seconds:.2f} s", flush=True)
    empty(root)


def check_python_module(root: Path) -> None:
    """The script that testcontainers' module for Python writes."""
    with container(root, "sh", "/tc-start.sh") as broker:
        seconds = broker.wait_for("Kafka Server started")
        exchange("127.0.0.1:9093", 1)
    print(f"testcontainers for Python: ready after {seconds:.2f} s", flush=True)
    empty(root)


def check_servers(root: Path) -> None:
    """The console and the registry of the image, with a broker of the image."""
    with container(root, START, "run") as broker:
        broker.wait_for("Kafka Server started")
        for name, ready in (("registry", r"ready .*:\d+"), ("console", r"http://.*:\d+")):
            with container(root, START, "ottla", name, "--bootstrap-server", "127.0.0.1:9092") as server:
                print(f"{name}: ready after {server.wait_for(ready):.2f} s", flush=True)
    empty(root)


def check_three_nodes(root: Path) -> None:
    """The pods of the manifest with three nodes form a cluster, on an address each, and one of them may fail."""
    text = MANIFEST.read_text(encoding="utf-8")
    (pod,) = (each["spec"]["template"]["spec"] for each in yaml.safe_load_all(text) if each["kind"] == "StatefulSet")
    described = pod["containers"][0]
    variables = {each["name"]: each["value"] for each in described["env"] if "value" in each}
    with ExitStack() as pods:
        nodes = []
        for name, host in NODES.items():
            own = {
                "POD_NAME": name.partition(".")[0],
                "KAFKA_LISTENERS": variables["KAFKA_LISTENERS"].replace("0.0.0.0", host),
                "OTTLA_METRICS_LISTEN": f"{host}:9404",
            }
            command = [*described["command"], *described["args"]]
            nodes.append(pods.enter_context(container(root, *command, variables=variables | own, own_data=True)))
        seconds = max(node.wait_for("Kafka Server started") for node in nodes)
        nodes[0].kill()
        send = "echo record | ottla produce --bootstrap-server ottla-1.ottla-nodes:9092 --set acks=all image"
        with container(root, "sh", "-c", send) as client:  # inside, where the names of the pods are known
            if client.wait():
                fail("no record was acknowledged after one of three nodes was killed")
    print(f"three nodes: ready after {seconds:.2f} s, and a record is acknowledged after one was killed", flush=True)


def exchange(address: str, count: int) -> None:
    """Send a record, and read it with those before."""
    with Producer(bootstrap_servers=address) as producer:
        producer.send("image", b"record").result(timeout=SECONDS)
    with Consumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("image", 0)])
        read = 0
        while read < count:
            found = len(list(consumer.poll(timeout=SECONDS)))
            if not found:
                fail(f"{read} of {count} records were read")
            read += found


def empty(root: Path) -> None:
    """Remove what a container has written."""
    for folder in ("var/lib/ottla", "tmp"):
        for path in (root / folder).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (root / "etc/kafka/kafka.properties").unlink(missing_ok=True)


def set_loopback_up() -> None:
    """Set the interface lo of this network namespace up, as a container engine does."""
    get_flags, set_flags, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, get_flags, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", flags | up))


def fail(reason: str) -> None:
    sys.exit(f"make image: {reason}")


if __name__ == "__main__":
    main()
