"""A broker in the thread of the test, with users that have one permission or all but one, and every request to it."""

from __future__ import annotations

import uuid
from typing import Any

from ottla.broker.apis.handlers import HANDLERS
from ottla.broker.network_server.call import Outcome
from ottla.broker.network_server.connection import Connection
from ottla.broker.settings.config import read_config
from ottla.protocol.apis import api_of
from ottla.protocol.conversation import decode_response, encode_response
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.schema import replace
from tests.broker.every_api import GROUP, KNOWN, SampleRequest, every_api
from tests.broker.permitted_users import USERS, acls
from tests.broker.serving import create_topic, decide, handle_request, start_server, stop_server
from tests.broker.wire import batch


class House:
    """The broker and its users."""

    def __init__(self) -> None:
        self.server = start_server(
            read_config(
                listeners="127.0.0.1:0",
                authorizer_class_name="standard",
                super_users="User:admin",
                delegation_token_secret_key="s3cret",
            )
        )
        self.node = self.server.node
        topic = create_topic(self.server, KNOWN)
        self.cases = every_api(topic.topic_id, batch([b"a"]))
        assert self.node.access is not None
        for user in USERS:
            decide(self.server, CreateAclsRequest([AclCreation(*rule) for rule in acls(user)]), 3)
        commit = replace(self.cases["OffsetCommit"].request, group_id=GROUP)
        self.ask(SampleRequest(commit, 9), "admin")
        self.ask(self.cases["FindCoordinator of an id"], "admin")

    @staticmethod
    def case_names() -> list[str]:
        """The names of all requests, before there is a broker."""
        return list(every_api(uuid.UUID(int=1), b""))

    def ask(self, asked: SampleRequest, user: str) -> Any:
        """Return the response that a user gets, encoded and decoded as over the network."""
        line = HANDLERS[api_of(asked.request).key]
        connection = Connection(1, ("127.0.0.1", 1), ("127.0.0.1", 2), 0.0)
        connection.principal = f"User:{user}"
        response = handle_request(self.server, connection, asked.request, asked.version)
        assert not isinstance(response, Outcome)
        parts = encode_response(response, asked.version, 1)
        frame = b"".join(bytes(part) if not hasattr(part, "file") else bytes(len(part)) for part in parts)
        return decode_response(line.api.response, asked.version, memoryview(frame))[1]

    def close(self) -> None:
        stop_server(self.server)
