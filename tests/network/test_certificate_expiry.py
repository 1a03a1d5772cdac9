"""The end of validity of certificates, compared with the package cryptography."""

from __future__ import annotations

import datetime

import pytest
import trustme
from cryptography import x509

from ottla.network.certificate_expiry import earliest_expiry, read_expiry

CA = trustme.CA()
FAR = datetime.datetime(2061, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
"""From 2050 on, certificates have their times in another form."""


def issue(end: datetime.datetime) -> str:
    return str(CA.issue_cert("localhost", not_after=end).cert_chain_pems[0].bytes(), "ascii")


@pytest.mark.parametrize("end", [datetime.datetime(2049, 12, 31, 23, 59, 59, tzinfo=datetime.UTC), FAR])
def test_the_end_is_that_which_another_library_reads(end: datetime.datetime) -> None:
    pem = issue(end)
    assert read_expiry(pem) == x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc.timestamp()
    assert read_expiry(pem.replace("CERTIFICATE", "TRUSTED CERTIFICATE")) == end.timestamp()


def test_the_first_end_of_a_chain_counts() -> None:
    soon = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    assert earliest_expiry([issue(FAR), issue(soon)]) == soon.timestamp()


@pytest.mark.parametrize("text", ["", "MA==", "MIIB", "MAIwAA=="])
def test_a_malformed_certificate_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="a certificate ends early"):
        read_expiry(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
