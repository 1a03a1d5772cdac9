"""A broker that does not run, with users who may do one thing or all but one, and every request to it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from ottla.broker.handlers import HANDLERS, guarded
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.server import Server
from ottla.broker.settings.config import read_config
from ottla.clock import SystemClock
from ottla.coordination.access.acl import Acl
from ottla.coordination.cluster.events import AclsRequested
from ottla.protocol.apis import api_of
from ottla.protocol.conversation import decode_response, encode_response
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.create_topics import CreatableTopic
from ottla.protocol.schema import replace
from tests.broker.every_api import GROUP, KNOWN, Asked, every_api
from tests.broker.permitted_users import USERS, acls
from tests.broker.wire import batch


def requested(rules: Sequence[Acl], ticket: int) -> AclsRequested:
    """A wish for rules."""
    return AclsRequested(ticket, rules, [uuid.uuid4() for _ in rules])


class House:
    """A broker that does not run, and the users of it."""

    def __init__(self) -> None:
        self.server = Server(
            read_config(
                listeners="127.0.0.1:0",
                authorizer_class_name="standard",
                super_users="User:admin",
                delegation_token_secret_key="s3cret",
            )
        )
        self.node = self.server.node
        self.node.topics.create([CreatableTopic(KNOWN, 1, 1)])
        topic = self.node.topics.named(KNOWN)
        assert topic is not None
        self.cases = every_api(topic.topic_id, batch([b"a"]))
        assert self.node.access is not None
        for user in USERS:
            rules = acls(user)
            self.node.access.ask(partial(requested, rules))
        commit = replace(self.cases["OffsetCommit"].request, group_id=GROUP)
        self.ask(Asked(commit, 9), "admin")
        self.ask(self.cases["FindCoordinator of an id"], "admin")

    @staticmethod
    def case_names() -> list[str]:
        """The names of all requests, before there is a broker."""
        return list(every_api(uuid.UUID(int=1), b""))

    def ask(self, asked: Asked, user: str) -> Any:
        """What a user hears, after a way over the wire."""
        line = HANDLERS[api_of(asked.request).key]
        connection = Connection(1, ("127.0.0.1", 1), ("127.0.0.1", 2), 0.0)
        connection.principal = f"User:{user}"
        call = Call(
            self.server.handler,
            connection,
            RequestHeader(line.api.key, asked.version, 1, "c"),
            SystemClock().monotonic(),
        )
        response = guarded(self.node, line, call, asked.request)
        assert not isinstance(response, Outcome)
        parts = encode_response(response, asked.version, 1)
        frame = b"".join(bytes(part) if not hasattr(part, "file") else bytes(len(part)) for part in parts)
        return decode_response(line.api.response, asked.version, memoryview(frame))[1]

    def close(self) -> None:
        self.server.stop()
        self.server.run()
