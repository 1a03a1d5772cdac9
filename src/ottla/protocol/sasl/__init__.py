"""Logins by SASL as conversations: pure machines for the client's side.

    first() ──► challenge ──► answer(challenge) ──► … ──► finish(challenge)

A `Conversation` is told what the server sent and tells what to send; chance is an argument, and no clock is read.
"""

from ottla.protocol.sasl.conversation import Conversation, SaslError
from ottla.protocol.sasl.gssapi import GssapiConversation
from ottla.protocol.sasl.oauthbearer import OAuthBearerConversation
from ottla.protocol.sasl.plain import PlainConversation
from ottla.protocol.sasl.scram import ScramConversation

__all__ = [
    "Conversation",
    "GssapiConversation",
    "OAuthBearerConversation",
    "PlainConversation",
    "SaslError",
    "ScramConversation",
]
