"""Commands without the required authorization fail at once with one clear error."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, NewTopic
from tests.cli.conftest import ottla

LOGIN = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=bob\nsasl.password=b\n"
HELP = "no rule (ACL) allows this to the client's user: create one for the"


@pytest.fixture(scope="module")
def of_bob(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The options with which bob logs in: he may describe topic `seen` only, and the broker also has topic `secret`."""
    users = {"alice": "a", "bob": "b"}
    rules: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:alice"}
    config: Path = tmp_path_factory.mktemp("bob") / "bob.properties"
    config.write_text(LOGIN)
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", users=users, **rules) as broker:
        alice = broker.client_settings()
        assert alice["sasl.username"] == "alice"
        with Admin(alice) as admin:
            admin.create_topics([NewTopic("seen", 1), NewTopic("secret", 1)])
        of_alice = tuple(word for pair in alice.items() for word in ("--set", "=".join(map(str, pair))))
        rule = ("--allow-principal", "User:bob", "--operation", "describe", "--topic", "seen")
        made = ottla("acls", "create", *rule, "--bootstrap-server", broker.bootstrap_servers, *of_alice)
        assert made.status == 0, made.err
        yield "--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("records produce secret", f"TOPIC_AUTHORIZATION_FAILED: DESCRIBE of topic 'secret' (a rule for READ or WRITE is sufficient too); {HELP} topic"),
        ("records produce seen", "this client's user may write to no topic: add an ACL for WRITE on the topic"),
        ("trace produce seen", "this client's user may write to no topic: add an ACL for WRITE on the topic"),
        ("consume seen -n 1 --from-beginning", f"TOPIC_AUTHORIZATION_FAILED: fetch of seen-0 at offset 0; {HELP} topic"),
        ("consume seen -n 1 --group g", f"not authorized to read in group 'g' (DESCRIBE is not allowed on group 'g'); {HELP} group"),
        ("topics create new", f"CREATE is allowed neither on the cluster nor on topic 'new'; {HELP} topic"),
        ("topics delete seen --yes", f"DELETE is not allowed on topic 'seen'; {HELP} topic"),
        ("groups describe g", f"DESCRIBE is not allowed on group 'g'; {HELP} group"),
        ("groups reset-offsets g --topic seen --to-earliest --execute", f"DESCRIBE is not allowed on group 'g'; {HELP} group"),
        ("configs describe --broker 1", f"DESCRIBE_CONFIGS is not allowed on cluster 'kafka-cluster'; {HELP} cluster"),
        ("configs alter --broker 1 --add-config log.retention.ms=1", "ALTER_CONFIGS is not allowed on cluster 'kafka-cluster'"),
        ("sql 'select * from secret'", "this user can see no topic of that name; ottla topics list prints the topics"),
    ],
)  # fmt: skip
def test_a_missing_authorization_is_one_clear_error(of_bob: tuple[str, ...], command: str, sentence: str) -> None:
    ended = ottla(*shlex.split(command), *of_bob, stdin="x\n")
    assert (ended.status, sentence in ended.sentence) == (1, True), ended
