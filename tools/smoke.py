"""Check an installed Ottla: a broker, a producer, a consumer, the command. Needs only Ottla.

`python tools/smoke.py`, anywhere but in `src`; with the argument "plain" the hot loops may be uncompiled, with "clients" no broker
is started, as on Windows.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

RECORDS = 2_000


def main() -> None:
    import ottla
    from ottla.compiled import uncompiled_modules

    home = Path(ottla.__file__).parent
    expect(home.parent == Path(sysconfig.get_path("platlib")), f"this is not the installed Ottla: {home}")
    plain = uncompiled_modules()
    expect(not plain or "plain" in sys.argv[1:], f"uncompiled: {', '.join(plain)}")
    if "clients" in sys.argv[1:]:
        clients_without_a_broker()
    else:
        round_trip()
    command()
    size = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
    print(
        f"ottla works on Python {sys.version.split()[0]}: {'uncompiled' if plain else 'compiled'}, {size / 1e6:.1f} MB"
    )


def round_trip() -> None:
    """Records go through a broker, compressed, and come out as they were."""
    from ottla import Broker, Consumer, Producer, TopicPartition

    sent = [f"record {n}".encode() for n in range(RECORDS)]
    with Broker(process=True) as broker:
        with Producer(bootstrap_servers=broker.bootstrap_servers, compression_type="zstd") as producer:
            for value in sent:
                producer.send("smoke", value)
        with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("smoke", 0)])
            read: list[bytes | None] = []
            while len(read) < RECORDS:
                found = [record.value for record in consumer.poll(timeout=30)]
                expect(bool(found), f"{len(read)} of {RECORDS} records came, and no more in 30 s")
                read += found
    expect(read == sent, "the records are not what was sent")


def clients_without_a_broker() -> None:
    """All clients are there, and a producer reports an address at which nothing listens."""
    from ottla import Admin, Consumer, OttlaError, Producer, aio

    expect(all((Admin, Consumer, aio.Consumer, aio.Producer)), "a client is missing")
    with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=500) as producer:
        try:
            producer.send("smoke", b"record").result(timeout=30)
        except OttlaError:
            return
    expect(False, "a record was sent to an address at which nothing listens")


def command() -> None:
    """`ottla` is there and answers."""
    name = Path(sysconfig.get_path("scripts"), "ottla")
    said = subprocess.run([name, "--help"], capture_output=True, text=True, check=True).stdout
    expect("broker" in said, f"`ottla --help` says: {said}")


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        sys.exit(otherwise)


if __name__ == "__main__":
    main()
