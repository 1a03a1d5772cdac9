"""Bearer tokens: whether one is signed by somebody who may, made for this broker, and not at its end.

Signatures are checked by `joserfc`, in the algorithms listed here and no others: `none`, and those with a secret that both sides
know, are refused before anything else is looked at. Pure: keys and time are arguments.
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
    """Why a token is not taken; for the log."""


class UnknownKey(TokenRefused):
    """It is signed with a key that is not known; whoever makes tokens may have a new one."""


class TokenRules(Struct, frozen=True):
    """What a token must say."""

    audience: tuple[str, ...]
    issuer: str | None
    skew_seconds: int
    sub_claim: str

    @classmethod
    def of(cls, config: ListenerConfig) -> TokenRules:
        """As the settings of a listener have them."""
        return cls(
            tuple(config.sasl_oauthbearer_expected_audience),
            config.sasl_oauthbearer_expected_issuer,
            config.sasl_oauthbearer_clock_skew_seconds,
            config.sasl_oauthbearer_sub_claim_name,
        )


def loads(text: str | bytes) -> Any:
    """As `json.loads`, which nobody needs whose clients show no tokens."""
    import json

    return json.loads(text)


def read_keys(where: str, data: bytes) -> Any:
    """A set of keys in JSON (RFC 7517); ConfigError where it is none."""
    with extra("security"):
        from joserfc.jwk import KeySet
    try:
        told = loads(data)
        keys = [each for each in told["keys"] if each.get("kty") in ("RSA", "EC", "OKP") and each.get("use") != "enc"]
        return KeySet.import_key_set({"keys": keys})
    except Exception as error:
        raise ConfigError(f"{where}: there is no set of keys (JWKS) in it: {type(error).__name__}") from None


def verify(token: str, keys: Any, rules: TokenRules, now: float) -> tuple[str, float]:
    """Whom a token names, and when it ends, in seconds since 1970; TokenRefused."""
    if len(token) > MOST_BYTES:
        raise TokenRefused(f"the token has {len(token)} characters, at most {MOST_BYTES} are taken")
    claims = signed_claims(token, keys)
    check_times(claims, rules, now)
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused(f"the token was made by {shown(claims.get('iss'))}, not by {rules.issuer!r}")
    made_for = claims.get("aud")
    audience = made_for if isinstance(made_for, list) else [made_for]
    if not any(each in rules.audience for each in audience if isinstance(each, str)):
        raise TokenRefused(f"the token was made for {shown(made_for)}, not for {' or '.join(rules.audience)}")
    user = claims.get(rules.sub_claim)
    if not isinstance(user, str) or not user or not user.isprintable():
        raise TokenRefused(f"the token names nobody: its claim {rules.sub_claim!r} is missing, or is no name")
    return user, float(claims["exp"])


def signed_claims(token: str, keys: Any) -> Mapping[str, Any]:
    """What a token says, if it is signed by one of the keys."""
    from joserfc import jws
    from joserfc.errors import BadSignatureError

    try:
        # As it stands in front, before any key is touched: `none` and HS… are not among those.
        header = jws.extract_compact(token.encode()).headers()
    except Exception:
        raise TokenRefused("the token is not a signed JWT") from None
    if header.get("alg") not in ALGORITHMS:
        raise TokenRefused(f"the token is signed by {shown(header.get('alg'))}, which is not taken")
    if keys is None:
        raise UnknownKey("no keys are known that tokens may be signed with")
    known = [key.kid for key in keys.keys]
    if header.get("kid") is not None and header["kid"] not in known:
        raise UnknownKey(f"the token is signed with a key that is not known: {shown(header['kid'])}")
    try:
        claims = loads(jws.deserialize_compact(token, keys, algorithms=list(ALGORITHMS)).payload)
    except BadSignatureError:
        raise TokenRefused("the token's signature is wrong") from None
    except Exception as error:
        raise TokenRefused(f"the token cannot be checked: {type(error).__name__}") from None
    if not isinstance(claims, dict):
        raise TokenRefused("the token has no claims")
    return claims


def check_times(claims: Mapping[str, Any], rules: TokenRules, now: float) -> None:
    """Refuse what has ended, has not begun, or says so in no way that can be read."""
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name)
        if value is None and name != "exp":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
            raise TokenRefused(f"the token's claim {name!r} is missing, or no time")
    if claims["exp"] + rules.skew_seconds <= now:
        raise TokenRefused("the token has expired")
    if max(claims.get("nbf", 0), claims.get("iat", 0)) - rules.skew_seconds > now:
        raise TokenRefused("the token is not valid yet: look at the clocks")
