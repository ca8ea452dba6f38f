"""POST /-/reload: for this machine, for who is known, and for everybody where that was asked for."""

import base64
import contextlib
import json
import ssl
import subprocess

import pytest

from support import attack, net
from support.certificate import self_signed
from support.tacho import Tacho


def address_of_this_machine() -> str | None:
    """One that is not loopback, over which this machine reaches itself."""
    shown = json.loads(subprocess.run(["ip", "-json", "-4", "address"], capture_output=True, text=True, check=True).stdout)
    found = [info["local"] for link in shown for info in link["addr_info"] if not info["local"].startswith("127.")]
    return found[0] if found else None


def reload_from(address: str, tacho: Tacho, tls: ssl.SSLContext | None = None, **headers: str) -> int:
    return net.exchange(f"{address}:{tacho.port}", "/-/reload", method="POST", headers=headers, tls=tls)[0]


@contextlib.contextmanager
def reachable(*flags: str):
    """A tacho that listens on all addresses, and one of this machine that is not loopback."""
    address = address_of_this_machine()
    if address is None:
        pytest.skip("this machine has no address but loopback's")
    with Tacho({"targets": []}, flags=["--web.listen-address=0.0.0.0:0", *flags]) as tacho:
        everywhere = tacho.process.wait_for_line(r"listening on 0\.0\.0\.0:(\d+)")[1]
        tacho.address = f"127.0.0.1:{everywhere}"
        yield tacho, address


@pytest.mark.parametrize("lifecycle", [False, True], ids=["by default", "--web.enable-lifecycle"])
def test_reloads_are_for_this_machine_unless_everybody_is_let_in(lifecycle):
    with reachable(*(["--web.enable-lifecycle"] if lifecycle else [])) as (tacho, address):
        assert reload_from("127.0.0.1", tacho) == 200
        assert reload_from(address, tacho) == (200 if lifecycle else 403)
        assert reload_from(address, tacho, Origin="http://evil.example") == 403, "a page of a browser may never"


def test_a_user_may_reload_from_the_network(tmp_path):
    (tmp_path / "web.yml").write_text(f"basic_auth_users:\n  reader: {attack.HASH}\n")
    with reachable(f"--web.config.file={tmp_path}/web.yml") as (tacho, address):
        assert reload_from(address, tacho) == 401
        assert reload_from(address, tacho, Authorization=basic("reader:wrong")) == 401
        assert reload_from(address, tacho, Authorization=basic("reader:secret")) == 200
        assert reload_from(address, tacho, Authorization=basic("reader:secret"), Origin="http://evil.example") == 403


def basic(login: str) -> str:
    return "Basic " + base64.b64encode(login.encode()).decode()


@pytest.mark.parametrize("asked_for", ["VerifyClientCertIfGiven", "RequireAnyClientCert"])
def test_who_has_a_certificate_that_is_verified_may_reload_from_the_network(tmp_path, asked_for):
    """Not who has made one for himself, where none is verified, and nobody for being encrypted."""
    certificates = {}
    for name in ("server", "client"):
        (tmp_path / name).mkdir()
        certificates[name] = self_signed(tmp_path / name)
    (certificate, key), (authority, _) = certificates["server"], certificates["client"]
    verified = asked_for == "VerifyClientCertIfGiven"
    (tmp_path / "web.yml").write_text(
        f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n  client_auth_type: {asked_for}\n  client_ca_file: {authority}\n"
    )
    with_one, without = client_context(certificates["client"]), client_context(None)
    with reachable(f"--web.config.file={tmp_path}/web.yml") as (tacho, address):
        assert reload_from(address, tacho, with_one) == (200 if verified else 403)
        if verified:
            assert reload_from(address, tacho, without) == 403
        assert reload_from("127.0.0.1", tacho, with_one) == 200


def client_context(certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(*certificate)
    return context
