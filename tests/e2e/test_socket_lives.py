"""Sockets that are older than tacho, that several processes share, or that go from one process to another."""

import contextlib
import socket

import pytest

from support.clients import ExactBatches, ab, exact
from support.servers import AsyncioEcho, ExactServer, HAProxy, Nginx, UringServer
from support.tacho import Tacho, target

REQUESTS = 1009


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(lambda prefix: ExactServer(prefix, mode="threads"), id="threads"),
        pytest.param(lambda prefix: ExactServer(prefix, mode="prefork", workers=3), id="prefork"),
        pytest.param(lambda prefix: UringServer(prefix, multishot="true"), id="io_uring"),
        pytest.param(AsyncioEcho, id="asyncio"),
        pytest.param(lambda prefix: AsyncioEcho(prefix, unix=True), id="unix socket"),
    ],
)
@pytest.mark.parametrize("used", [0, 7])
def test_connections_older_than_tacho(cgroups, agree, request, start, used):
    """Whether a request had gone over them before or not."""
    group = cgroups("older")
    with start(group.prefix) as server, ExactBatches(server.address, connections=3) as client:
        if used:
            client.send(used)
        with Tacho({"targets": [target("older", group.path)]}) as tacho:
            with tacho.watch("older") as change:
                counted = client.send(REQUESTS)
    how = request.node.callspec.id.rpartition("-")[2]
    agree(f"connected before tacho, {'used' if used else 'unused'}, {how}", counted, change)


def test_a_proxy_with_connections_older_than_tacho(cgroups, agree):
    groups = {name: cgroups(name) for name in ("proxy", "upstream")}
    with (
        Nginx(groups["upstream"].prefix) as back,
        HAProxy(back.address, groups["proxy"].prefix) as front,
    ):
        ab(front.url("/return"), 101, keep_alive=True)
        with Tacho({"targets": [target(name, group.path) for name, group in groups.items()]}) as tacho:
            with tacho.watch("proxy") as proxied, tacho.watch("upstream") as served:
                counted = ab(front.url("/return"), REQUESTS, keep_alive=True)
    agree("HAProxy, connected to its server before tacho", counted, proxied)
    agree("its server", counted, served)
    assert proxied.of("tacho_dependency_calls_total", peer=back.address) == proxied.requests


def test_a_port_of_several_listening_sockets(cgroups, agree):
    """SO_REUSEPORT: one for each worker."""
    group = cgroups("reuseport")
    with (
        Nginx(group.prefix, workers=3, listen="reuseport") as server,
        Tacho({"targets": [target("reuseport", group.path, ports=[server.port])]}) as tacho,
    ):
        with tacho.watch("reuseport") as change:
            counted = ab(server.url("/static"), REQUESTS)
        agree("nginx, 3 listening sockets on one port", counted, change)


@pytest.mark.parametrize("before", [True, False])
def test_a_listening_socket_that_was_inherited(cgroups, agree, before):
    """As from systemd: made by somebody who is not watched, before tacho started or after."""
    group = cgroups("inherited")
    with contextlib.ExitStack() as stack:
        if not before:
            tacho = stack.enter_context(Tacho({"targets": [target("inherited", group.path)]}))
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stack.enter_context(AsyncioEcho(group.prefix, listening=listener))
        if before:
            tacho = stack.enter_context(Tacho({"targets": [target("inherited", group.path)]}))
        with tacho.watch("inherited") as change:
            counted = exact(f"127.0.0.1:{listener.getsockname()[1]}", REQUESTS, connections=3, requests_per_connection=11)
    agree(f"listening socket inherited, {'before' if before else 'after'} tacho", counted, change)


@pytest.mark.parametrize("per_connection", [1, 11])
@pytest.mark.parametrize("acceptor_is_watched", [False, True])
def test_connections_passed_to_another_process(cgroups, agree, acceptor_is_watched, per_connection):
    """Requests belong to the process that serves them, whoever accepted the connection."""
    acceptor, worker = cgroups("acceptor"), cgroups("worker")
    watched = {"worker": worker} | ({"acceptor": acceptor} if acceptor_is_watched else {})
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        AsyncioEcho(worker.prefix, connections=theirs),
        AsyncioEcho(acceptor.prefix, handing_over=ours) as server,
        Tacho({"targets": [target(name, group.path) for name, group in watched.items()]}) as tacho,
        contextlib.ExitStack() as observed,
    ):
        changes = {name: observed.enter_context(tacho.watch(name)) for name in watched}
        counted = exact(
            server.address, REQUESTS, connections=3, requests_per_connection=per_connection, timeout=30,
        )  # fmt: skip
        observed.close()
    who = "in another target" if acceptor_is_watched else "that nobody watches"
    agree(f"connections from an acceptor {who}, {per_connection} requests each", counted, changes["worker"])
    if acceptor_is_watched:
        assert changes["acceptor"].requests == 0
        assert changes["acceptor"].of("tacho_requests_unanswered_total") == 0
