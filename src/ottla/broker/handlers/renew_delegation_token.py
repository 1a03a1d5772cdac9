"""RenewDelegationToken: keep a token for longer, within its life; for its owner and those who may renew it."""

from __future__ import annotations

from ottla.broker.handlers.create_delegation_token import handle as handle  # all three ask the same of who calls
