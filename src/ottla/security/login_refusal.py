"""Why there is no login."""

from __future__ import annotations

from ottla.network.refusal import Refusal


class LoginRefusal(Refusal):
    """Such a reason: the broker does not take it, or is not to be believed, or there is nothing to log in with."""

    __slots__ = ()
