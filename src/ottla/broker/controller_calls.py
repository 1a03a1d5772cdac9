"""Who is asked what on a controller's listener: the quorum, the active controller, or either in an envelope (KIP-590).

    request ──► what this node knows of itself │ the quorum's machine │ the active controller ──► answer, now or later

What a broker hands on comes as the client sent it, with who that is; the answer goes back as the client reads it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ottla.broker.authentication.token_requests import TokenRequest, refused
from ottla.broker.config_changes import GUARDED
from ottla.broker.controller_access import Asker, ControllerAccess, client_of
from ottla.broker.controller_events import Asking, event_of, is_decided, refusal_of, response_of
from ottla.broker.controller_shares import share
from ottla.broker.controller_tokens import swept, token_event
from ottla.broker.controllers import controller_apis
from ottla.broker.controllers.controller_apis import FORWARDED
from ottla.broker.controllers.raft_driver import RaftDriver
from ottla.broker.handlers import describe_acls, describe_configs
from ottla.broker.requests.connection import ANONYMOUS
from ottla.broker.requests.reading import read_request
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import Settings
from ottla.clock import Clock
from ottla.coordination.cluster.features import KRAFT_VERSION
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.quorum import described
from ottla.coordination.quorum.events import RequestReceived
from ottla.errors import ErrorCode, KafkaError, ProtocolError
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.apis import APIS, api_of
from ottla.protocol.conversation import decode_header, encode_response
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest
from ottla.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.protocol.schema import Message

logger = logging.getLogger(__name__)
Answer = Callable[[Message], None]
NOBODY = Asker(ANONYMOUS, "")
NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER


class ControllerCalls:
    """Of one loop: not to be used from two threads."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self.driver: RaftDriver
        """Set by whoever makes it, who has the answers come here."""
        self._config = config
        self._clock = clock
        self._access = ControllerAccess(config) if config.authorizer_class_name else None
        self._tickets: dict[int, Answer] = {}
        self._last_ticket = 0

    def take(self, asker: Asker, request: Any, version: int, answer: Answer, refuse: Answer | None = None) -> None:
        """Have it answered, perhaps later; by `refuse` where this is not the active controller, if there is another way to say so."""
        if self._access is not None:
            term = self.driver.term
            self._access.know(None if term is None else term.machine.metadata)
            denial = self._access.refusal(asker, request, version)
            if denial is not None:
                logger.warning(
                    "%s asked for %s from %s, and may not", asker.principal, api_of(request).name, asker.host
                )
                answer(denial)
                return
            if term is not None:
                may = partial(self._access.allows, asker)
                request, finish = share(request, may, term.machine.metadata)
                tell = answer
                answer = lambda response: tell(finish(response))  # noqa: E731
        self._carry_out(asker, request, version, answer, refuse)

    def take_of_broker(self, request: Any, version: int, answer: Answer, refuse: Answer) -> None:
        """Handle a request of the broker role in this process, which may do all that a broker may."""
        self._carry_out(NOBODY, request, version, answer, refuse)

    def _carry_out(self, asker: Asker, request: Any, version: int, answer: Answer, refuse: Answer | None) -> None:
        raft = self.driver.raft
        match request:
            case ApiVersionsRequest():
                answer(self._versions())
            case DescribeQuorumRequest():
                answer(described.describe_quorum(raft, request, self._clock.wall_ms()))
            case DescribeClusterRequest():
                answer(described.describe_cluster(raft, request, self._registered()))
            case EnvelopeRequest():
                self._open(request, answer)
            case DescribeAclsRequest() | DescribeConfigsRequest():
                self._describe(asker, request, answer)
            case _ if isinstance(request, TokenRequest):
                self._decide_token(asker, request, version, answer, refuse or answer)
            case _ if is_decided(type(request)):
                self._decide(Asking(request, version, self._config), answer, refuse or answer)
            case _:
                self._last_ticket += 1
                self._tickets[self._last_ticket] = answer
                self.driver.step(RequestReceived(self._last_ticket, request))

    def reply(self, ticket: int, response: Message) -> None:
        self._tickets.pop(ticket)(response)

    @property
    def _metadata(self) -> ClusterMetadata:
        """As they are committed, which every voter knows."""
        known = self.driver.snapshots.metadata if self.driver.snapshots is not None else None
        return ClusterMetadata() if known is None else known

    def _registered(self) -> Mapping[int, tuple[str, int]]:
        """Where controllers are that have said so."""
        listed = self._metadata.controllers.items()
        return {id_: (each.end_points[0].host, each.end_points[0].port) for id_, each in listed if each.end_points}

    def _versions(self) -> Message:
        """What the cluster runs, the active controller alone says; a broker that joins asks that one."""
        raft, term = self.driver.raft, self.driver.term
        if term is None or not term.machine.metadata.features:
            return controller_apis.api_versions(decides=raft.can_be_controller)
        finalized = {**term.machine.metadata.features, KRAFT_VERSION: raft.log.kraft_version}
        return controller_apis.api_versions(decides=True, finalized=finalized, offset=raft.high_watermark - 1)

    def _decide(self, asking: Asking, answer: Answer, refuse: Answer) -> None:
        if isinstance(asking.request, DeleteTopicsRequest) and not self._config.delete_topic_enable:
            why = Refusal(ErrorCode.TOPIC_DELETION_DISABLED, "the controller's setting delete.topic.enable is false")
            answer(refusal_of(asking, why))
            return

        def tell(reply: Any) -> None:
            is_lost = isinstance(reply, KafkaError) and reply.code == ErrorCode.NOT_CONTROLLER
            (refuse if is_lost else answer)(response_of(asking, reply))

        self.driver.decide(event_of(asking), tell)

    def _describe(self, asker: Asker, request: DescribeAclsRequest | DescribeConfigsRequest, answer: Answer) -> None:
        """What every voter knows: how it stands by what is committed."""
        metadata = self._metadata
        if isinstance(request, DescribeAclsRequest):
            answer(describe_acls.answer(None if self._access is None else metadata.acls, request))
            return
        settings = Settings(self._config, metadata.brokers)
        known = describe_configs.Known(
            metadata.topics, metadata.groups, metadata.subscriptions, settings, self._config.node_id
        )
        allows = partial(self._access.allows, asker) if self._access is not None else None
        answer(describe_configs.answer(known, request, lambda kind, name: denial_by(allows, kind, name)))

    def _decide_token(self, asker: Asker, request: TokenRequest, version: int, answer: Answer, refuse: Answer) -> None:
        term, access = self.driver.term, self._access
        if term is None:
            refuse(refused(request, asker.principal, version, NOT_CONTROLLER))
            return

        def may_have_for(owner: str) -> bool:
            return access is None or access.allows(asker, Operation.CREATE_TOKENS, ResourceType.USER, owner)

        metadata = term.machine.metadata
        event, response = token_event(self._config, self._clock, metadata, asker, request, version, may_have_for)
        if event is None:
            answer(response)
            return

        def tell(reply: Any) -> None:
            if isinstance(reply, KafkaError):
                tell_refused = refuse if reply.code == NOT_CONTROLLER else answer
                tell_refused(refused(request, asker.principal, version, reply.code))
            else:
                answer(response)

        self.driver.decide(event, tell)

    def sweep_tokens(self) -> None:
        """Clear away those that have ended, if this is the active controller."""
        if self.driver.term is not None:
            for event in swept(self._config, self._clock, self.driver.term.machine.metadata):
                self.driver.decide(event, lambda _: None)

    def _open(self, envelope: EnvelopeRequest, answer: Answer) -> None:
        """What a client wants, as its broker hands it on; a broker asks elsewhere only if the envelope itself is refused."""
        if self.driver.term is None:
            answer(EnvelopeResponse(error_code=NOT_CONTROLLER))
            return
        try:
            is_told = self._access is not None or envelope.request_principal is not None
            asker = client_of(envelope) if is_told else NOBODY
            header, request = opened(memoryview(envelope.request_data))
        except KafkaError as error:
            answer(EnvelopeResponse(error_code=error.code))
            return
        done = partial(close, header, answer)
        refuse = lambda _: answer(EnvelopeResponse(error_code=NOT_CONTROLLER))  # noqa: E731
        self.take(asker, request, header.api_version, done, refuse)


def denial_by(allows: Callable[..., bool] | None, kind: int, name: str) -> Refusal | None:
    """Why somebody may not see the configs of a resource; everybody may where no rules are kept."""
    if allows is None or kind not in GUARDED:
        return None
    owner, code = GUARDED[kind]
    guarded_name = CLUSTER_NAME if owner is ResourceType.CLUSTER else name
    if allows(Operation.DESCRIBE_CONFIGS, owner, guarded_name):
        return None
    return Refusal(code, f"DESCRIBE_CONFIGS is not allowed on {owner.name.lower()} {guarded_name!r}")


def opened(frame: memoryview) -> tuple[RequestHeader, Any]:
    """The request in an envelope; KafkaError where it is none that may be handed on."""
    try:
        header, position = decode_header(frame, FORWARDED)
        api = APIS[header.api_key]
        if header.api_version not in api.versions:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{api.name} v{header.api_version} is not known")
        return header, read_request(api.request, header.api_version, frame, position)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def close(header: RequestHeader, answer: Answer, response: Message) -> None:
    """Put an answer into its envelope."""
    parts = encode_response(response, header.api_version, header.correlation_id)
    answer(EnvelopeResponse(b"".join(map(bytes, parts))))  # type: ignore[arg-type]
