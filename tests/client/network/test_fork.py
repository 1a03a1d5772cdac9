"""A forked child has copies of its parent's clients, which it can neither use nor harm."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, sys
from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.errors import IllegalStateError

servers, topic = sys.argv[1:]
partition = TopicPartition(topic, 0)
admin, producer = Admin(bootstrap_servers=servers), Producer(bootstrap_servers=servers)
consumer = Consumer(bootstrap_servers=servers, auto_offset_reset="earliest")
consumer.assign([partition])
producer.send(topic, b"before").result(timeout=20)
assert [record.value for record in consumer.poll(20)] == [b"before"]
admin.list_topics()
member = Consumer(bootstrap_servers=servers, group_id="forked", auto_offset_reset="earliest")
member.subscribe([topic])
while not member.assignment():
    member.poll(0.1)
member.position(partition)  # else there may be nothing to commit yet

child = os.fork()
if not child:
    for use in (lambda: consumer.poll(5), lambda: member.poll(5), lambda: member.commit(), lambda: producer.send(topic, b"child"), lambda: admin.list_topics()):
        try:
            use()
        except IllegalStateError as error:
            assert "fork" in str(error), error
        else:
            os._exit(1)
    producer.flush()
    for client in (producer, consumer, member, admin):
        client.close()
    with Producer(bootstrap_servers=servers) as another:
        another.send(topic, b"another").result(timeout=20)
    os._exit(0)

_, status = os.waitpid(child, 0)
assert status == 0, status
assert producer.send(topic, b"after").result(timeout=20).offset == 2
values = []
while len(values) < 2:
    values += [record.value for record in consumer.poll(20)]
assert values == [b"another", b"after"], values
assert topic in admin.list_topics()
while member.position(partition) < 3:
    member.poll(1)
for client in (producer, consumer, member, admin):
    client.close()
"""


def without_hint(text: str) -> str:
    """Return what a process printed, without the line about an uncompiled install."""
    return "".join(line for line in text.splitlines(True) if not line.startswith("running without compiled hot loops"))


def test_a_forked_child_can_neither_use_nor_harm_its_parents_clients(servers: str, topic: str) -> None:
    # A process of its own, and without complaints of forking among threads, which is what is tried here.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, servers, topic]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, without_hint(done.stderr)) == (0, "")
