"""Why a connection ended, where trying again will not change it."""

from __future__ import annotations


class HungUp(str):
    """The peer closed the connection amid the handshake of TLS, without a word: nobody knows why, yet."""

    __slots__ = ()


class NobodyThere(str):
    """The machine is there, and says that nobody listens at that port: whoever did has ended."""

    __slots__ = ()


class Refusal(str):
    """Such a reason: a login or a handshake was refused by one of both sides."""

    __slots__ = ()
