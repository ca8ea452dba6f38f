"""A certificate for the TLS servers of the tests."""

import pathlib

from support.process import run


P256 = ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
RSA4096 = ["rsa:4096"]  # whose handshakes cost milliseconds


def self_signed(directory: pathlib.Path, kind=P256) -> tuple[pathlib.Path, pathlib.Path]:
    """Makes a certificate for 127.0.0.1 with such a key, valid for a day. Returns the files (certificate, key)."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    run([
        "openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-days", 1,
        "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate,
    ])  # fmt: skip
    return certificate, key
