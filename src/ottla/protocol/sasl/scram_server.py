"""SCRAM on the server side (RFC 5802, RFC 7677), in Kafka's form: no channel binding, no SASLprep.

An unknown user gets a decoy salt, and is rejected when the proof is checked, so that existing names are not revealed.
"""

from __future__ import annotations

import base64
import re
from functools import partial
from typing import NamedTuple

from ottla.digests import are_same, hashed, mac
from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.scram import DIGESTS, decode_field, parse_fields
from ottla.protocol.sasl.scram_credential import ScramCredential, decoy
from ottla.protocol.sasl.server import Accepted, CheckToken, FindUser, KnownUser, MakeDecoy, Step, Work

FIRST = re.compile(r"(?P<binding>[yn]|p=[^,]*),(?:a=(?P<acts>[^,]*))?,(?P<bare>(?P<rest>.*))", re.DOTALL)
NAME = re.compile(r"(?:[^=,\0]|=2C|=3D)+")
NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,256}")


class ClientFirst(NamedTuple):
    """The parsed `client-first-message` of RFC 5802."""

    header: str
    """The part that the final message must repeat."""
    bare: str
    username: str
    nonce: str
    by_token: bool


class ScramServerConversation:
    """Processes the client's two messages: user name and proof."""

    def __init__(
        self,
        mechanism: str,
        find: FindUser,
        nonce: str,
        secret: bytes,
        make_decoy: MakeDecoy | None = None,
        check_token: CheckToken | None = None,
    ) -> None:
        """`nonce` is random printable ASCII without a comma. `make_decoy` creates the credential sent for an unknown name.

         Without `make_decoy` it is derived from `secret`, in the shape of the credentials that Ottla creates.
        `check_token` finds the credential of a delegation token, for known and unknown ids alike, when a proof is
        checked.
        """
        self._mechanism = mechanism
        self._digest = DIGESTS[mechanism]
        self._find = find
        self._nonce = nonce
        self._make_decoy = make_decoy or (lambda name, by_token: decoy(mechanism, secret, name))
        self._check_token = check_token
        self._first: ClientFirst | None = None
        self._known: KnownUser | None = None
        self._credential: ScramCredential
        self._answer = ""

    def next(self, message: bytes) -> Step:
        """Return salt and iterations, then the user with the server's signature."""
        if self._first is None:
            return self._begin(parse_client_first(read_message(message)))
        return self._check(self._first, read_message(message))

    def _begin(self, first: ClientFirst) -> bytes:
        self._first = first
        self._known = self._find(first.username, first.by_token)
        instead = self._make_decoy(
            first.username, first.by_token
        )  # always computed, so that the response time does not depend on the user
        found = None if self._known is None else self._known.credential
        credential = self._credential = found or instead
        self._nonce = first.nonce + self._nonce
        salt = base64.b64encode(credential.salt).decode()
        self._answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._answer.encode()

    def _check(self, first: ClientFirst, text: str) -> Step:
        said, _, proof = text.rpartition(",p=")
        parts = said.split(",")
        if len(parts) < 2 or not parts[0].startswith("c=") or not parts[1].startswith("r="):
            raise SaslError("the final message is not a SCRAM message")
        binding = base64.b64encode(first.header.encode()).decode()
        if not are_same(parts[0][2:].encode(), binding.encode()):
            raise SaslError("the final message is bound to another channel than the first")
        # Without this check a recorded proof could be replayed (CVE-2024-56128).
        if not are_same(parts[1][2:].encode(), self._nonce.encode()):
            raise SaslError("the nonce of the final message does not match")
        whole, shown, check_token = (
            f"{first.bare},{self._answer},{said}".encode(),
            decode_field("proof", proof),
            self._check_token,
        )
        if first.by_token and check_token is not None:
            accept = partial(self._accept, first, whole, shown)
            return Work(lambda: check_token(first.username, accept))
        return self._accept(first, whole, shown, self._credential)

    def _accept(self, first: ClientFirst, said: bytes, proof: bytes, credential: ScramCredential) -> Accepted:
        signature = mac(credential.stored_key, said, self._digest)
        if len(proof) != len(signature):
            raise SaslError("the proof has the wrong length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        shown = hashed(self._digest, client_key)
        if not are_same(shown, credential.stored_key) or self._known is None:
            raise SaslError("the password is wrong, or there is no such user")
        own = base64.b64encode(mac(credential.server_key, said, self._digest))
        return Accepted(self._known.name, b"v=" + own, self._known.until_ms, first.by_token)


def read_message(message: bytes) -> str:
    """Return a message of the client as text."""
    try:
        return parse_fields(message)
    except SaslError as error:
        raise SaslError(str(error).replace("server's", "client's")) from None


def parse_client_first(text: str) -> ClientFirst:
    """Return name, nonce and extensions of the first message."""
    found = FIRST.fullmatch(text)
    if found is None:
        raise SaslError("the first message is not a SCRAM message")
    if found["binding"].startswith("p"):
        raise SaslError("channel binding is not supported")
    name, _, rest = found["rest"].partition(",")
    nonce, *extensions = rest.split(",")
    if not name.startswith("n=") or not nonce.startswith("r="):
        raise SaslError("the first message has no name, or demands an unknown extension")
    if not NAME.fullmatch(name[2:]) or not NONCE.fullmatch(nonce[2:]):
        raise SaslError("the name or the nonce of the first message is malformed")
    username = name[2:].replace("=2C", ",").replace("=3D", "=")
    if found["acts"] not in (None, "", name[2:]):
        raise SaslError("the authorization id differs from the user name")
    header = text[: len(text) - len(found["bare"])]
    return ClientFirst(header, found["bare"], username, nonce[2:], "tokenauth=true" in extensions)
