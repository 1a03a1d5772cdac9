"""Bearer tokens: the checks of signature, issuer, audience and times.

Signatures are checked by `joserfc`, in the algorithms listed here only: `none` and those with a shared secret are
rejected before anything else is read. Pure: keys and time are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ottla.broker.settings.listener_config import ListenerConfig
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.protocol.sentences import shown

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
MOST_BYTES = 16 * 1024
"""A longer token is none."""


class TokenRefused(Exception):
    """The reason why a token is rejected, for the log."""


class UnknownKey(TokenRefused):
    """The token is signed with an unknown key. The issuer may have a new key."""


class TokenRules(Struct, frozen=True):
    """The required claims of a token."""

    audience: tuple[str, ...]
    """The accepted audiences; empty if the audience is not checked."""
    issuer: str | None
    """The required issuer; None if the issuer is not checked."""
    skew_seconds: int
    sub_claim: str

    @classmethod
    def read(cls, config: ListenerConfig) -> TokenRules:
        """Return the rules in the settings of a listener."""
        any_audience = config.sasl_oauthbearer_allow_unverified_audience
        any_issuer = config.sasl_oauthbearer_allow_unverified_issuer
        return cls(
            () if any_audience else tuple(config.sasl_oauthbearer_expected_audience),
            None if any_issuer else config.sasl_oauthbearer_expected_issuer,
            config.sasl_oauthbearer_clock_skew_seconds,
            config.sasl_oauthbearer_sub_claim_name,
        )


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. The module is loaded only if clients use tokens."""
    import json

    return json.loads(text)


def read_keys(where: str, data: bytes) -> Any:
    """Return a set of keys from JSON (RFC 7517). Raise ConfigError if it is malformed."""
    with extra("security"):
        from joserfc.jwk import KeySet
    try:
        document = parse_json(data)
        keys = [
            each for each in document["keys"] if each.get("kty") in ("RSA", "EC", "OKP") and each.get("use") != "enc"
        ]
        return KeySet.import_key_set({"keys": keys})
    except Exception as error:
        raise ConfigError(f"{where}: it is not a set of keys (JWKS): {type(error).__name__}") from None


def verify_token(token: str, keys: Any, rules: TokenRules, now: float) -> tuple[str, float]:
    """Return the user of a token, and its expiry in seconds since 1970. Raise TokenRefused."""
    if len(token) > MOST_BYTES:
        raise TokenRefused(f"the token has {len(token)} characters, more than the limit of {MOST_BYTES}")
    claims = signed_claims(token, keys)
    check_times(claims, rules, now)
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused(f"the token was made by {shown(claims.get('iss'))}, not by {rules.issuer!r}")
    made_for = claims.get("aud")
    audience = made_for if isinstance(made_for, list) else [made_for]
    if rules.audience and not any(each in rules.audience for each in audience if isinstance(each, str)):
        raise TokenRefused(f"the token was made for {shown(made_for)}, not for {' or '.join(rules.audience)}")
    user = claims.get(rules.sub_claim)
    if not isinstance(user, str) or not user or not user.isprintable():
        raise TokenRefused(f"the token has no user: its claim {rules.sub_claim!r} is missing or not a name")
    return user, float(claims["exp"])


def signed_claims(token: str, keys: Any) -> Mapping[str, Any]:
    """Return the claims of a token if one of the keys has signed it. Raise TokenRefused or UnknownKey."""
    from joserfc import jws
    from joserfc.errors import BadSignatureError

    try:
        # The algorithm in the header is checked before any key is used: `none` and HS… are not in the list.
        header = jws.extract_compact(token.encode()).headers()
    except Exception:
        raise TokenRefused("the token is not a signed JWT") from None
    if header.get("alg") not in ALGORITHMS:
        raise TokenRefused(f"the token is signed by {shown(header.get('alg'))}, which is not accepted")
    if keys is None:
        raise UnknownKey("no keys are known that tokens may be signed with")
    known = [key.kid for key in keys.keys]
    if header.get("kid") is not None and header["kid"] not in known:
        raise UnknownKey(f"the token is signed with an unknown key: {shown(header['kid'])}")
    try:
        claims = parse_json(jws.deserialize_compact(token, keys, algorithms=list(ALGORITHMS)).payload)
    except BadSignatureError:
        raise TokenRefused("the token's signature is wrong") from None
    except Exception as error:
        raise TokenRefused(f"the token cannot be checked: {type(error).__name__}") from None
    if not isinstance(claims, dict):
        raise TokenRefused("the token has no claims")
    return claims


def check_times(claims: Mapping[str, Any], rules: TokenRules, now: float) -> None:
    """Raise TokenRefused if the token has expired, is not valid yet, or has malformed times."""
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name)
        if value is None and name != "exp":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
            raise TokenRefused(f"the token's claim {name!r} is missing or not a time")
    if claims["exp"] + rules.skew_seconds <= now:
        raise TokenRefused("the token has expired")
    if max(claims.get("nbf", 0), claims.get("iat", 0)) - rules.skew_seconds > now:
        raise TokenRefused("the token is not valid yet: check the clocks")
