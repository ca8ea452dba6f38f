"""A certificate for the TLS servers of the tests."""

import pathlib

from support.process import run


def self_signed(directory: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Makes a certificate for 127.0.0.1 with a P-256 key, valid for a day. Returns the files (certificate, key)."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 1,
        "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate,
    ])  # fmt: skip
    return certificate, key
