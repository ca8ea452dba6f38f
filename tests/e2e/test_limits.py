"""What exporter/LIMITS.md says that tacho cannot see, where no other test shows it (tests/support/limits.yaml names them all)."""

import dataclasses
import pathlib
import smtplib
import socket
import subprocess
import tempfile
import time

import pytest

from support.certificate import self_signed
from support.clients import Counted, ab
from support.clients.resp import RespClient
from support.clients.tls import TlsConnection
from support.net import free_port, udp_ports
from support.process import Process
from support.servers import HAProxy, Nginx, Redis, Rsyslog, Script
from support.tacho import Tacho, target
from support.waiting import wait_until

MESSAGES = 101


def connect(server) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def test_commands_of_smtp_are_turns(cgroups, agree):
    """The greeting is none, what the client says to it is one."""
    group = cgroups("smtp")
    with Script("smtp.py", group.prefix) as server, Tacho({"targets": [target("smtp", group.path)]}) as tacho:
        with tacho.watch("smtp") as change:
            for _ in range(5):
                with smtplib.SMTP("127.0.0.1", server.port, timeout=20) as client:
                    for _ in range(3):
                        client.sendmail("a@example", ["b@example", "c@example"], "Subject: x\r\n\r\nx")
        # EHLO; MAIL, two RCPT, DATA and the text, thrice; QUIT.
        agree("SMTP", Counted("smtplib", 5 * (1 + 3 * 5 + 1), 1), change)


def test_what_shares_a_record_is_not_told(cgroups):
    """Ten requests of HTTP in one record of TLS are one turn."""
    group = cgroups("tls")
    request = b"GET /return HTTP/1.1\r\nHost: a\r\n\r\n"
    with Nginx(group.prefix, tls="TLSv1.3") as server:
        with Tacho({"targets": [target("tls", group.path)], "window": "2s"}) as tacho:
            with tacho.watch("tls") as change, TlsConnection(server.tls_port) as client:
                for _ in range(MESSAGES):
                    client.secured.sendall(10 * request)
                    got = b""
                    while got.count(b"HTTP/1.1 200") < 10:
                        got += client.secured.recv(65536)
            assert change.requests == MESSAGES
            samples = wait_until(lambda: (s := tacho.scrape()).get("tacho_observed_rps", target="tls") > 0 and s, 4, "the window")
            assert samples.get("tacho_target_condition", target="tls", condition="multiplexed") == 0


def test_what_a_client_says_to_news_seems_to_be_asked(cgroups):
    """A subscriber that acknowledges each piece of news: the next one seems to answer that."""
    group = cgroups("push")
    with Script("push.py", group.prefix) as server, Tacho({"targets": [target("push", group.path)]}) as tacho:
        with tacho.watch("push") as change:
            with connect(server) as client, client.makefile("rb") as received:
                client.sendall(b"subscribe\n")
                for _ in received:
                    client.sendall(b"ack\n")
        # All but those that come together, and the last one.
        assert MESSAGES // 2 < change.requests <= 1 + MESSAGES


def test_signs_of_life_of_both_sides_seem_to_be_answered(cgroups):
    """The client gives its own at its own pace, and waits for nothing."""
    group = cgroups("alive")
    with Script("push.py", group.prefix) as server, Tacho({"targets": [target("alive", group.path)]}) as tacho:
        with tacho.watch("alive") as change:
            with connect(server) as client, client.makefile("rb") as received:
                client.sendall(b"connect\n")
                # One for two of the server's.
                for number, _ in enumerate(received):
                    if number % 2:
                        client.sendall(b"\n")
        assert MESSAGES // 4 < change.requests <= 2 + MESSAGES // 2


def test_a_handshake_of_dtls_counts(cgroups):
    """Two lines are echoed; the client's hello, without and with a cookie, and its last flight are answered, too."""
    group = cgroups("dtls")
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        certificate, key = self_signed(pathlib.Path(directory))
        words = ["gnutls-serv", "--udp", "--echo", "--quiet", "--disable-client-cert", f"--port={port}",
                 f"--x509certfile={certificate}", f"--x509keyfile={key}"]  # fmt: skip
        with Process(words, prefix=group.prefix), Tacho({"targets": [target("dtls", group.path)]}) as tacho:
            wait_until(lambda: port in udp_ports(), 10, "gnutls-serv has its port")
            with tacho.watch("dtls") as change:
                words = ["gnutls-cli", "--udp", "--no-ca-verification", f"--port={port}", "127.0.0.1"]
                with Process(words, stdin=subprocess.PIPE) as client:
                    client.wait_for_line("Simple Client Mode")
                    for line in ("one", "two"):
                        client.tell(line)
                        client.wait_for_line(f"^{line}$")
    assert change.requests == 2 + 3


def test_a_goodbye_of_dtls_that_is_answered_counts(cgroups):
    """OpenSSL answers it, GnuTLS does not. What is said either way is typed."""
    group = cgroups("dtls")
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        certificate, key = self_signed(pathlib.Path(directory))
        server_words = ["openssl", "s_server", "-dtls1_2", "-accept", f"127.0.0.1:{port}", "-cert", certificate, "-key", key]
        with (
            Process(server_words, prefix=group.prefix, stdin=subprocess.PIPE) as server,
            Tacho({"targets": [target("dtls", group.path)]}) as tacho,
        ):
            wait_until(lambda: port in udp_ports(), 10, "s_server has its port")
            with tacho.watch("dtls") as change:
                words = ["openssl", "s_client", "-dtls1_2", "-connect", f"127.0.0.1:{port}", "-no_ign_eof"]
                with Process(words, stdin=subprocess.PIPE) as client:
                    server.wait_for_line("Secure Renegotiation")
                    client.tell("one")
                    server.wait_for_line("^one$")
                    server.tell("two")
                    client.wait_for_line("^two$")
                    client.tell("Q")
                    client.wait()
    assert change.requests == 1 + 3 + 1


def test_processes_of_a_target_that_serve_each_other_count(cgroups, agree):
    """A proxy and what it asks, in one cgroup: each request is two."""
    group = cgroups("both")
    with Nginx(group.prefix) as back, HAProxy(back.address, group.prefix) as front:
        with Tacho({"targets": [target("both", group.path)]}) as tacho, tacho.watch("both") as change:
            counted = ab(front.url("/return"), MESSAGES)
    agree("HAProxy and nginx in one target", dataclasses.replace(counted, requests=2 * counted.requests), change)


def test_a_blocking_pop_waits_for_its_news_and_counts(cgroups, agree):
    group = cgroups("list")
    wait = 0.3
    with Redis(group.prefix) as server, Tacho({"targets": [target("list", group.path)]}) as tacho:
        with tacho.watch("list") as change, connect(server) as client, RespClient(server.port) as other:
            for _ in range(3):
                client.sendall(b"BLPOP list 0\r\n")
                time.sleep(wait)
                other.command("RPUSH list news")
                assert client.recv(4096).endswith(b"news\r\n")
    agree("redis, BLPOP", Counted("socket", 2 * 3, 1), change)
    assert change.of("tacho_request_duration_seconds_sum") >= 3 * wait


def test_what_is_pushed_is_no_request(cgroups, agree):
    group = cgroups("push")
    with Script("push.py", group.prefix) as server, Tacho({"targets": [target("push", group.path)]}) as tacho:
        with tacho.watch("push") as change:
            with connect(server) as client, client.makefile("rb") as received:
                client.sendall(b"subscribe\n")
                lines = list(received)
        assert lines == [b"subscribed\n"] + [b"news\n"] * MESSAGES
        agree("a server that pushes", Counted("socket", 1, 1), change)
        assert change.sends == 1 + MESSAGES


def test_each_piece_that_is_sent_back_as_it_comes_counts(cgroups):
    """One upload, whose answer begins before it has ended."""
    group = cgroups("echo")
    with Script("pieces.py", group.prefix) as server, Tacho({"targets": [target("echo", group.path)]}) as tacho:
        with tacho.watch("echo") as change, connect(server) as client:
            for _ in range(MESSAGES):
                client.sendall(b"a piece\n")
                assert client.recv(100) == b"a piece\n"
    assert change.requests == MESSAGES


def test_what_is_answered_unread_is_no_request(cgroups):
    group = cgroups("peek")
    with Script("pieces.py", group.prefix) as server, Tacho({"targets": [target("peek", group.path)]}) as tacho:
        with tacho.watch("peek") as change:
            for _ in range(MESSAGES):
                with connect(server) as client:
                    client.sendall(b"peek at this\n")
                    assert client.recv(100) == b"busy\n"
    assert change.requests == 0
    assert change.sends == MESSAGES


def test_what_is_spliced_is_an_operation_by_function_hooks_only(cgroups):
    """From a socket to a pipe; what is spliced to a socket is a send. Requests count all the same."""
    group = cgroups("splice")
    with Script("splice.py", group.prefix) as server, Tacho({"targets": [target("splice", group.path)]}) as tacho:
        attached = tacho.scrape().all("tacho_probe_attached", probe="socket")
        ways = {labels["hook"]: labels["method"] for labels, value in attached if value == 1}
        with tacho.watch("splice") as change, connect(server) as client:
            for _ in range(MESSAGES):
                client.sendall(b"hello")
                assert client.recv(100) == b"hello"
    seen = MESSAGES if "splice" in ways or ways["receive"] in ("fentry", "kprobe") else 0
    assert (change.requests, change.receives, change.sends) == (MESSAGES, seen, MESSAGES)


@pytest.mark.parametrize(
    ("datagram", "replies"),
    [(b"INVITE sip:a SIP/2.0", 3), (b"\xc0\x00\x00\x00\x01" + bytes(1195), 1)],
    ids=["three replies", "QUIC"],
)
def test_datagrams_that_are_no_question_and_answer_are_told(cgroups, datagram, replies):
    group = cgroups("ringing")
    config = {"targets": [target("ringing", group.path)], "window": "2s"}
    with Script("ringing.py", group.prefix, "ready") as server, Tacho(config) as tacho:
        tacho.wait_for_target("ringing")
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.settimeout(20)
            client.connect(("127.0.0.1", server.port))
            for _ in range(MESSAGES):
                client.send(datagram)
                assert len([client.recv(100) for _ in range(replies)]) == replies
        wait_until(
            lambda: tacho.scrape().get("tacho_target_condition", target="ringing", condition="multiplexed") == 1, 4,
            "the condition",
        )  # fmt: skip
        assert tacho.requests("ringing") == MESSAGES


def test_calls_sent_together_over_a_stream_are_one(cgroups):
    """Three commands in three sends before the first answer is read."""
    group = cgroups("asking")
    with Redis() as server, Tacho({"targets": [target("asking", group.path)], "window": "4s"}) as tacho:
        tacho.wait_for_target("asking")
        with Process(["/usr/bin/python3", "-B", Script.file("ask_ahead.py"), server.port, MESSAGES], prefix=group.prefix) as client:
            assert client.wait() == 0, client.output
        samples = tacho.settled("asking")
        calls = samples.get("tacho_dependency_calls_total", target="asking", peer=server.address)
        assert calls == MESSAGES
        wait_until(
            lambda: tacho.scrape().get("tacho_target_condition", target="asking", condition="multiplexed_calls") == 1, 4,
            "the condition",
        )  # fmt: skip


def test_datagrams_without_a_reply_are_messages(cgroups):
    """A sink over UDP and on a unix socket, and a server that replies from another socket, as TFTP's do. None has requests in flight."""
    groups = {name: cgroups(name) for name in ("sink", "tftp")}
    with (
        Rsyslog(groups["sink"].prefix) as sink,
        Script("tftp.py", groups["tftp"].prefix, "ready") as tftp,
        Tacho({"targets": [target(name, group.path) for name, group in groups.items()]}) as tacho,
    ):
        for name in groups:
            tacho.wait_for_target(name)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix, socket.socket(type=socket.SOCK_DGRAM) as udp:
            unix.connect(str(sink.unix_socket))
            udp.connect(("127.0.0.1", sink.port))
            for number in range(MESSAGES):
                for client in (unix, udp):
                    client.send(f"<13>Jan  1 00:00:00 tacho: message {number}".encode())
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.settimeout(20)
            for _ in range(MESSAGES):
                client.sendto(b"read", ("127.0.0.1", tftp.port))
                assert client.recv(100) == b"data"
        wait_until(lambda: sink.written() == 2 * MESSAGES, 10, "all messages are written")
        for name, messages in (("sink", 2 * MESSAGES), ("tftp", MESSAGES)):
            wait_until(
                lambda: tacho.scrape().get("tacho_oneway_messages_total", target=name) == messages, 10, f"messages of {name}"
            )
            samples = tacho.settled(name)
            for family in ("tacho_requests_total", "tacho_requests_in_flight", "tacho_requests_unanswered_total"):
                assert samples.get(family, target=name) == 0, (name, family)
