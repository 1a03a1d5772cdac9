from __future__ import annotations

import socket
import struct

from ottla import Broker
from ottla.errors import ErrorCode
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.protocol.schema import Message


def send_request(sock: socket.socket, request: Message, version: int) -> memoryview:
    frame = b"".join(bytes(part) for part in encode_request(request, version, 7, "me"))  # type: ignore[arg-type]
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    with sock.makefile("rb") as answers:
        return memoryview(answers.read(struct.unpack(">i", answers.read(4))[0]))


def test_a_login_on_a_listener_without_sasl_is_rejected_as_in_kafka() -> None:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as sock:
            _, shake = decode_response(
                SaslHandshakeResponse, 1, send_request(sock, SaslHandshakeRequest(mechanism="PLAIN"), 1)
            )
            _, reported = decode_response(SaslAuthenticateResponse, 2, send_request(sock, SaslAuthenticateRequest(), 2))
    assert shake.error_code == reported.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert "security.protocol=PLAINTEXT" in (reported.error_message or "")
