"""Who may do what: everybody everything, since there is no authorizer yet."""

from __future__ import annotations

from ottla.errors import ErrorCode

NO_AUTHORIZER = (
    ErrorCode.SECURITY_DISABLED,
    "This broker has no authorizer: everybody may do everything, and no rules are kept.",
)
"""What is answered to who asks for rules, or would change them."""
