"""Servers that replace their processes under load: no request is lost to the count, and the target stays."""

import contextlib
import dataclasses
import signal
import socket
import threading

import pytest

from support.cgroup import Cgroup
from support.clients import ab, exact
from support.net import listens
from support.servers import Apache, Caddy, ExactServer, Gunicorn, HAProxy, Nginx
from support.tacho import Tacho, target
from support.waiting import wait_until


@contextlib.contextmanager
def repeatedly(act):
    """Calls act() again and again in the background while the block runs. Yields the list of what it returned."""
    done, results, errors = threading.Event(), [], []

    def go():
        try:
            while not done.is_set():
                results.append(act())
        except Exception as error:  # noqa: BLE001: it is raised where the test sees it
            errors.append(error)

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield results
    finally:
        done.set()
        thread.join(timeout=30)
    if errors:
        raise errors[0]


def together(parts):
    """What several runs of one client counted."""
    return dataclasses.replace(
        parts[0], requests=sum(part.requests for part in parts), seconds=sum(part.seconds for part in parts)
    )


def test_nginx_reloads_under_load(cgroups, agree):
    """Old workers serve to the end what they have accepted; new ones take over the listening socket."""
    group = cgroups("reload")
    with Nginx(group.prefix, workers=2) as server, Tacho({"targets": [target("reload", group.path)]}) as tacho:
        with tacho.watch("reload") as change, repeatedly(lambda: ab(server.url("/static"), 503)) as parts:
            for _ in range(3):
                old = set(group.pids()) - {server.process.pid}
                server.process.signal(signal.SIGHUP)
                wait_until(lambda: not old & set(group.pids()), 20, "old workers have ended")
        agree("nginx, reloaded thrice", together(parts), change)


def test_haproxy_reloads_under_load(cgroups, agree):
    """The new process gets the listening sockets over a unix socket (SCM_RIGHTS)."""
    group = cgroups("reload")
    with (
        Nginx() as back,
        HAProxy(back.address, group.prefix) as server,
        Tacho({"targets": [target("reload", group.path, ports=[server.port])]}) as tacho,
    ):
        with tacho.watch("reload") as change, repeatedly(lambda: ab(server.url("/return"), 503)) as parts:
            for _ in range(3):
                server.reload()
        agree("HAProxy, reloaded thrice", together(parts), change)


def test_gunicorn_reloads_under_load(cgroups, agree):
    """Its master keeps the listening socket, and makes new workers before it ends the old ones."""
    group = cgroups("reload")
    with Gunicorn(group.prefix) as server, Tacho({"targets": [target("reload", group.path)]}) as tacho:
        with tacho.watch("reload") as change, repeatedly(lambda: ab(server.url, 101)) as parts:
            old = set(group.pids()) - {server.process.pid}
            server.process.signal(signal.SIGHUP)
            wait_until(lambda: not old & set(group.pids()), 30, "old workers have ended")
        agree("gunicorn, reloaded", together(parts), change)


def test_gunicorn_is_replaced_under_load(cgroups, agree):
    """SIGUSR2: another program is executed with the listening socket; then the old one is told to end."""
    group = cgroups("replaced")
    with Gunicorn(group.prefix) as server, Tacho({"targets": [target("replaced", group.path)]}) as tacho:
        with tacho.watch("replaced") as change, repeatedly(lambda: ab(server.url, 101)) as parts:
            old = set(group.pids())
            seen = server.process.line_count
            server.process.signal(signal.SIGUSR2)
            server.process.wait_for_line("Booting worker", timeout=20, start=seen)
            server.process.signal(signal.SIGTERM)
            wait_until(lambda: not old & set(group.pids()), 30, "the old program has ended")
        agree("gunicorn, replaced", together(parts), change)


class HalfRequest:
    """A request whose end is sent when its server is about to end."""

    def __init__(self, server):
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=20)
        self._socket.sendall(b"GET /static HTTP/1.1\r\n")

    def finish(self) -> bytes:
        """The reply, until the server closes the connection."""
        with self._socket:
            self._socket.sendall(b"Host: localhost\r\nConnection: close\r\n\r\n")
            reply = b""
            while part := self._socket.recv(65536):
                reply += part
        return reply


def discovered(tacho, group) -> str:
    wait_until(lambda: tacho.scrape().target_of(group.path), 5, "the server is discovered")
    return tacho.scrape().target_of(group.path)


@pytest.mark.parametrize(
    ("make", "goodbye"),
    [
        (lambda prefix: Nginx(prefix), signal.SIGQUIT),
        (lambda prefix: Gunicorn(prefix, "gthread", workers=1), signal.SIGTERM),
        (Caddy, signal.SIGTERM),
        (lambda prefix: Apache(prefix, model="event"), signal.SIGWINCH),
    ],
    ids=["nginx -s quit", "gunicorn TERM", "Caddy TERM (Go)", "Apache graceful-stop"],
)
def test_a_discovered_server_that_drains_is_counted_to_its_last_reply(cgroups, make, goodbye):
    """It closes its listening socket first, and answers what it has read."""
    group, others = cgroups("drain"), cgroups("others")
    with make(group.prefix) as server, Tacho() as tacho:
        name = discovered(tacho, group)
        before = tacho.settled(name)
        requests = [HalfRequest(server) for _ in range(4)]
        wait_until(
            lambda: tacho.scrape().get("tacho_requests_in_flight", target=name) == len(requests), 5, "all are read"
        )
        server.process.signal(goodbye)
        wait_until(lambda: not listens(server.port), 10, "the listening socket is closed")
        # A plan that is made after that: it knows of another server.
        with Cgroup("another", others) as another, ExactServer(another.prefix):
            discovered(tacho, another)
        for request in requests:
            assert request.finish().startswith(b"HTTP/1.1 200 ")
        after = tacho.settled(name)
        for family, expected in (("tacho_requests_total", len(requests)), ("tacho_requests_unanswered_total", 0)):
            assert after.get(family, target=name) - before.get(family, target=name) == expected, family


def test_a_discovered_unit_that_is_restarted_loses_no_request(cgroups):
    """Its cgroup is removed and made again, as systemd does it; a client waits at the port."""
    parent = cgroups("units")
    with Tacho() as tacho:
        counted = 0
        for life in range(5):
            with Cgroup("web.service", parent) as group, ExactServer(group.prefix) as server:
                if life == 0:
                    discovered(tacho, group)
                # At once from the second life on: nothing is waited for.
                counted += exact(server.address, 101, connections=3).requests
                name = discovered(tacho, group)
                wait_until(lambda: tacho.requests(name) >= counted, 5, "its requests")
                assert tacho.requests(name) == counted, f"in life {life}"
