"""Dispatch requests of a controller's listener to the quorum, the active controller, or this node's own state (KIP-590).

    request ──► own state of this node │ Raft state machine │ active controller ──► response, now or later

A broker forwards a client's request in an Envelope, as the bytes that the client sent, with the client's principal and address.
The response in the envelope is encoded for the client's version, so that the broker can pass on its bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.controller import controller_apis
from ottla.broker.controller.asker import NOBODY, Requester
from ottla.broker.controller.controller_apis import FORWARDED, OF_BROKERS
from ottla.broker.controller.raft_driver import RaftDriver
from ottla.broker.network_server.request_parsing import read_request
from ottla.broker.security.authorization import NO_AUTHORIZER
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import DynamicSettings
from ottla.clock import Clock
from ottla.coordination.cluster.features import KRAFT_VERSION
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.events import ControllerRequest
from ottla.coordination.quorum.events import RequestReceived
from ottla.errors import ErrorCode, KafkaError, ProtocolError
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.apis import APIS, api_of
from ottla.protocol.conversation import decode_header, encode_response
from ottla.protocol.headers import RequestHeader
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.controller.controller_access import ControllerAccess
    from ottla.broker.controller.controller_snapshots import ControllerSnapshots
    from ottla.broker.security.audit_log import AuditLog
    from ottla.broker.security.delegation_token_requests import TokenRequest
    from ottla.protocol.messages.envelope import EnvelopeRequest

OF_TOKENS = frozenset(("CreateDelegationToken", "ExpireDelegationToken", "RenewDelegationToken"))
OF_VOTERS = frozenset(("AddRaftVoter", "RemoveRaftVoter"))
logger = logging.getLogger(__name__)
Answer = Callable[[Message], None]
NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER


class ControllerCalls:
    """Not thread-safe: used by one event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        driver: RaftDriver,
        snapshots: ControllerSnapshots,
        clock: Clock,
        audit: AuditLog | None = None,
    ) -> None:
        """`audit` is the log of authorization decisions, if there is one. The owner passes responses of the Raft state machine to `reply`."""
        self._driver = driver
        self._snapshots = snapshots
        self._config = config
        self._clock = clock
        self._access: ControllerAccess | None = None
        if config.authorizer_class_name:
            from ottla.broker.controller.controller_access import ControllerAccess

            self._access = ControllerAccess(config, audit)
        self._tickets: dict[int, Answer] = {}
        self._last_ticket = 0

    def handle_client_request(
        self, asker: Requester, request: Any, version: int, answer: Answer, refuse: Answer | None = None
    ) -> None:
        """Handle a request; the response may come later.

        The request is authorized first, as a whole and then per resource. `refuse` is called in place of `answer` if
        this node is not the active controller.
        """
        if self._access is not None:
            term = self._driver.term
            self._access.update_metadata(None if term is None else term.machine.metadata)
            denial = self._access.find_refusal(asker, request, version)
            if denial is not None:
                logger.warning(
                    "%s asked for %s from %s, and may not", asker.principal, api_of(request).name, asker.host
                )
                answer(denial)
                return
            if term is not None:
                from ottla.broker.controller.partial_authorization import split_request

                may = partial(self._access.allows, asker)
                request, finish = split_request(request, may, term.machine.metadata)
                respond = answer
                answer = lambda response: respond(finish(response))  # noqa: E731
        self._execute(asker, request, version, answer, refuse)

    def handle_broker_request(self, request: Any, version: int, answer: Answer, refuse: Answer) -> None:
        """Handle a request of the broker role in this process, which needs no authorization."""
        self._execute(NOBODY, request, version, answer, refuse)

    def _execute(self, asker: Requester, request: Any, version: int, answer: Answer, refuse: Answer | None) -> None:
        api = api_of(request)
        name = api.name
        match name:
            case "ApiVersions":
                answer(self._versions())
            case "CreateAcls" | "DeleteAcls" if self._access is None:
                answer(response_without_authorizer(request))
            case "DescribeQuorum" | "DescribeCluster":
                answer(self._describe_quorum(request, version))
            case "Envelope":
                self._open_envelope(request, answer)
            case "DescribeAcls" | "DescribeConfigs":
                self._describe(asker, request, answer)
            case _ if name in OF_TOKENS:
                self._decide_token(asker, request, version, answer, refuse or answer)
            case _ if name in OF_BROKERS:
                self._decide_for_broker(request, answer, refuse or answer)
            case _ if name in OF_VOTERS or api.key not in FORWARDED:
                self._last_ticket += 1
                self._tickets[self._last_ticket] = answer
                self._driver.step(RequestReceived(self._last_ticket, request))
            case _:
                self._decide(request, version, answer, refuse or answer)

    def _describe_quorum(self, request: Any, version: int) -> Message:
        from ottla.coordination.quorum import described

        raft = self._driver.raft
        if api_of(request).name == "DescribeQuorum":
            return described.describe_quorum(raft, request, version, self._clock.wall_ms())
        return described.describe_cluster(raft, request, self._registered())

    def reply(self, ticket: int, response: Message) -> None:
        self._tickets.pop(ticket)(response)

    @property
    def _metadata(self) -> ClusterMetadata:
        """The committed metadata, which every voter has; empty before it is read."""
        known = self._snapshots.metadata
        return ClusterMetadata() if known is None else known

    def _registered(self) -> Mapping[int, tuple[str, int]]:
        """Return the address of each registered controller by its node id."""
        listed = self._metadata.controllers.items()
        return {id_: (each.end_points[0].host, each.end_points[0].port) for id_, each in listed if each.end_points}

    def _versions(self) -> Message:
        """Return ApiVersions.

        Only the active controller states finalized features, so a broker that joins sends its request to that one.
        """
        raft, term = self._driver.raft, self._driver.term
        if term is None or not term.machine.metadata.features:
            return controller_apis.api_versions(decides=raft.can_be_controller)
        finalized = {**term.machine.metadata.features, KRAFT_VERSION: raft.log.kraft_version}
        return controller_apis.api_versions(decides=True, finalized=finalized, offset=raft.high_watermark - 1)

    def _decide(self, request: Any, version: int, answer: Answer, refuse: Answer) -> None:
        """Decide a change that a client requested."""
        from ottla.broker.controller.controller_events import (
            ForwardedRequest,
            build_event,
            build_event_response,
            build_refusal,
        )

        asking = ForwardedRequest(request, version, self._config)
        if api_of(request).name == "DeleteTopics" and not self._config.delete_topic_enable:
            why = Refusal(ErrorCode.TOPIC_DELETION_DISABLED, "the controller's setting delete.topic.enable is false")
            answer(build_refusal(asking, why))
            return

        def send_reply(reply: Any) -> None:
            is_lost = isinstance(reply, KafkaError) and reply.code == ErrorCode.NOT_CONTROLLER
            (refuse if is_lost else answer)(build_event_response(asking, reply))

        self._driver.decide(build_event(asking), send_reply)

    def _decide_for_broker(self, request: Any, answer: Answer, refuse: Answer) -> None:
        """Decide a request of a broker or of another controller: the controller replies with the response."""

        def send_reply(reply: Any) -> None:
            if isinstance(reply, KafkaError):
                response = api_of(request).response(error_code=reply.code)  # type: ignore[call-arg]  # each has it
                (refuse if reply.code == ErrorCode.NOT_CONTROLLER else answer)(response)
            else:
                answer(reply)

        self._driver.decide(ControllerRequest(0, request), send_reply)

    def _describe(self, asker: Requester, request: Any, answer: Answer) -> None:
        """Describe ACLs or configs by the committed metadata, which every voter knows."""
        from ottla.broker.apis import describe_acls, describe_configs

        metadata = self._metadata
        if api_of(request).name == "DescribeAcls":
            answer(describe_acls.build_response(None if self._access is None else metadata.acls, request))
            return
        settings = DynamicSettings(self._config, metadata.broker_configs)
        known = describe_configs.ConfigSources(
            metadata.topics, metadata.groups, metadata.subscriptions, settings, self._config.node_id
        )
        allows = partial(self._access.allows, asker) if self._access is not None else None
        answer(describe_configs.build_response(known, request, lambda kind, name: denial_by(allows, kind, name)))

    def _decide_token(
        self, asker: Requester, request: TokenRequest, version: int, answer: Answer, refuse: Answer
    ) -> None:
        from ottla.broker.controller.controller_tokens import token_event
        from ottla.broker.security.delegation_token_requests import build_error

        term, access = self._driver.term, self._access
        if term is None:
            refuse(build_error(request, asker.principal, version, NOT_CONTROLLER))
            return

        def may_have_for(owner: str) -> bool:
            return access is None or access.allows(asker, Operation.CREATE_TOKENS, ResourceType.USER, owner)

        metadata = term.machine.metadata
        event, response = token_event(self._config, self._clock, metadata, asker, request, version, may_have_for)
        if event is None:
            answer(response)
            return

        def send_reply(reply: Any) -> None:
            if isinstance(reply, KafkaError):
                tell_refused = refuse if reply.code == NOT_CONTROLLER else answer
                tell_refused(build_error(request, asker.principal, version, reply.code))
            else:
                answer(response)

        self._driver.decide(event, send_reply)

    def sweep_tokens(self) -> None:
        """Delete expired delegation tokens, if this is the active controller."""
        from ottla.broker.controller.controller_tokens import list_expirations

        if self._driver.term is not None:
            for event in list_expirations(self._config, self._clock, self._driver.term.machine.metadata):
                self._driver.decide(event, lambda _: None)

    def _open_envelope(self, envelope: EnvelopeRequest, answer: Answer) -> None:
        """Handle the forwarded request in an envelope.

        An error in the envelope itself makes the broker retry at another controller. An error of the forwarded request
        is inside the inner response.
        """
        from ottla.broker.controller.controller_access import read_client
        from ottla.protocol.messages.envelope import EnvelopeResponse

        if self._driver.term is None:
            answer(EnvelopeResponse(error_code=NOT_CONTROLLER))
            return
        try:
            has_principal = self._access is not None or envelope.request_principal is not None
            asker = read_client(envelope) if has_principal else NOBODY
            header, request = decode_request(memoryview(envelope.request_data))
        except KafkaError as error:
            answer(EnvelopeResponse(error_code=error.code))
            return
        asker = asker._replace(client_id=header.client_id, api_key=header.api_key)
        done = partial(close, header, answer)
        refuse = lambda _: answer(EnvelopeResponse(error_code=NOT_CONTROLLER))  # noqa: E731
        self.handle_client_request(asker, request, header.api_version, done, refuse)


def response_without_authorizer(request: Any) -> Message:
    """Return the response to a change of ACLs if there is no authorizer."""
    from ottla.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
    from ottla.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse

    if isinstance(request, CreateAclsRequest):
        return CreateAclsResponse(results=[AclCreationResult(*NO_AUTHORIZER) for _ in request.creations])
    results = [DeleteAclsFilterResult(*NO_AUTHORIZER) for _ in request.filters]
    return DeleteAclsResponse(filter_results=results)


def denial_by(allows: Callable[..., bool] | None, kind: int, name: str) -> Refusal | None:
    """Return a refusal if the client may not describe the configs of a resource, else None."""
    from ottla.broker.apis.config_changes import GUARDED

    if allows is None or kind not in GUARDED:
        return None
    owner, code = GUARDED[kind]
    guarded_name = CLUSTER_NAME if owner is ResourceType.CLUSTER else name
    if allows(Operation.DESCRIBE_CONFIGS, owner, guarded_name):
        return None
    return Refusal(code, f"DESCRIBE_CONFIGS is not allowed on {owner.name.lower()} {guarded_name!r}")


def decode_request(frame: memoryview) -> tuple[RequestHeader, Any]:
    """Return the request in an envelope. KafkaError if it is malformed, or its API is not forwarded."""
    try:
        header, position = decode_header(frame, FORWARDED)
        api = APIS[header.api_key]
        if header.api_version not in api.versions:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{api.name} v{header.api_version} is not known")
        return header, read_request(api.request, header.api_version, frame, position)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def close(header: RequestHeader, answer: Answer, response: Message) -> None:
    """Send the response, encoded for the client's version, in an envelope."""
    from ottla.protocol.messages.envelope import EnvelopeResponse

    parts = encode_response(response, header.api_version, header.correlation_id)
    answer(EnvelopeResponse(b"".join(map(bytes, parts))))  # type: ignore[arg-type]
