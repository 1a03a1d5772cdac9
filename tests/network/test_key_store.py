"""Truststores and keystores: an invalid one is one error that does not quote its content."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.config import Password
from ottla.errors import ConfigError, MissingExtraError
from ottla.network.key_store import KeyStore, TrustStore, write_temporary_files
from ottla.network.tls_context import TlsSettings, context_of, openssl_name
from tests.certificates import Authority, trust_pkcs12

Make = Callable[[Authority, Path], object]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def trusting(store: TrustStore) -> list[object]:
    return list(context_of(TlsSettings(trust=store)).get_ca_certs())


def showing(store: KeyStore) -> ssl.SSLContext:
    return context_of(TlsSettings(own=store))


def test_authorities_may_be_a_file_a_text_or_a_store_of_javas(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "t.p12").write_bytes(trust_pkcs12(authority.pem, "secret"))
    of_file = trusting(TrustStore(location=authority.file))
    assert len(of_file) == 1
    assert trusting(TrustStore(certificates=authority.pem)) == of_file
    assert trusting(TrustStore(location=str(tmp_path / "t.p12"), password=Password("secret"))) == of_file
    assert trusting(TrustStore(location=str(tmp_path / "t.p12"), kind="JKS", password=Password("secret"))) == of_file


def test_the_systems_authorities_are_left_out_where_others_are_named(authority: Authority) -> None:
    assert len(trusting(TrustStore(location=authority.file))) == 1


WRONG_TRUST: dict[str, tuple[bytes | None, str | None, str]] = {
    "missing": (None, None, "cannot be read: No such file"),
    "empty": (b"", None, "there is no certificate in it"),
    "a key": (
        b"-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----",
        None,
        "there is no certificate in it",
    ),
    "nonsense": (
        b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----",
        None,
        "a certificate cannot be read",
    ),
    "JKS": (b"\xfe\xed\xfe\xed\0\0\0\2", None, "keytool -importkeystore -srckeystore"),
    "said to be PKCS12": (
        b"-----BEGIN",
        "PKCS12",
        "its type is set to PKCS12, but it is PEM: correct ssl.truststore.type",
    ),
    "damaged PKCS12": (b"\x30\x82\x01\x01junk", None, "it cannot be opened; ssl.truststore.password"),
}


@pytest.mark.parametrize("case", WRONG_TRUST)
def test_an_unusable_truststore_is_an_error_with_the_reason(tmp_path: Path, case: str) -> None:
    data, kind, reported = WRONG_TRUST[case]
    path = tmp_path / "store"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        trusting(TrustStore(location=str(path), kind=kind))
    assert reported in str(caught.value)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


def two_files(chain: str, key: str, folder: Path, password: str | None = None) -> KeyStore:
    (folder / "cert").write_text(chain)
    (folder / "key").write_text(key)
    secret = None if password is None else Password(password)
    return KeyStore(chain_location=str(folder / "cert"), key_location=str(folder / "key"), key_password=secret)


def store(data: bytes, folder: Path, password: str | None = None) -> KeyStore:
    (folder / "store").write_bytes(data)
    return KeyStore(location=str(folder / "store"), store_password=None if password is None else Password(password))


WRONG_KEY: dict[str, tuple[Callable[[Authority, Path], KeyStore], str]] = {
    "another's key": (
        lambda a, f: two_files(a.certificate().chain, a.certificate().key, f),
        "the private key does not match the certificate",
    ),
    "no password": (
        lambda a, f: two_files((c := a.certificate()).chain, c.encrypted_key("s3cret"), f),
        "give its password with ssl.key.password",
    ),
    "wrong password": (
        lambda a, f: two_files((c := a.certificate()).chain, c.encrypted_key("s3cret"), f, "wr0ng"),
        "ssl.key.password is wrong",
    ),
    "no key": (lambda a, f: store(a.certificate().chain.encode(), f), "there is no private key with the certificate"),
    "wrong store password": (
        lambda a, f: store(a.certificate().pkcs12("s3cret"), f, "wr0ng"),
        "ssl.keystore.password is not the password of the store",
    ),
    "no store password": (
        lambda a, f: store(a.certificate().pkcs12("s3cret"), f),
        "ssl.keystore.password is missing",
    ),
    "JKS": (lambda a, f: store(b"\xfe\xed\xfe\xed", f), "keytool -importkeystore"),
}


@pytest.mark.parametrize("case", WRONG_KEY)
def test_an_unusable_keystore_is_an_error_with_the_reason(authority: Authority, tmp_path: Path, case: str) -> None:
    make, reported = WRONG_KEY[case]
    with pytest.raises(ConfigError) as caught:
        showing(make(authority, tmp_path))
    assert reported in str(caught.value)
    for secret in ("s3cret", "wr0ng", "PRIVATE KEY"):
        assert secret not in str(caught.value)


def test_a_key_that_is_a_text_is_on_no_disk() -> None:
    with write_temporary_files("one", "two") as names:
        assert [Path(name).read_text() for name in names] == ["one", "two"]
        if sys.platform == "linux":
            assert all(name.startswith("/proc/self/fd/") for name in names)


def test_where_there_is_no_memory_for_files_they_are_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.memfd_create", raising=False)
    with write_temporary_files("one") as names:
        path = Path(names[0])
        assert path.read_text() == "one"
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()


def test_pkcs12_needs_its_extra(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = store(authority.certificate().pkcs12("secret"), tmp_path, "secret")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(MissingExtraError, match=r"ottla\[security\]"):
        showing(made)


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE-RSA-CHACHA20-POLY1305"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_suites_have_two_names(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl


@pytest.mark.parametrize(
    ("suite", "message"),
    [("TLS_AES_128_GCM_SHA256", "Python cannot choose among"), ("NOBODYS", "OpenSSL supports none of these")],
)
def test_a_suite_that_cannot_be_chosen_is_refused(suite: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        context_of(TlsSettings(cipher_suites=(suite,)))
