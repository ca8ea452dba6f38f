"""Cleartext HTTP/2 and gRPC, counted by frames: without being asked where a connection begins with the preface."""

import concurrent.futures
import re

import grpc
import pytest

from support.clients.counted import Counted
from support.clients.h2load import h2load
from support.process import run
from support.servers import Nginx, Node
from support.servers.grpc_echo import STREAM, STREAMED, UNARY, GrpcEcho
from support.servers.nghttpd import Nghttpd, Nghttpx
from support.tacho import Tacho, target


def following(name, group, **keys):
    return Tacho({"targets": [target(name, group.path, **keys)]})


def check_nothing_lost(change):
    for reason in ("http2_step", "http2_stream"):
        assert change.after.sum("tacho_lost_events_total", probe="socket", reason=reason) == 0
    assert change.after.get("tacho_target_condition", target=change.target, condition="multiplexed") == 0
    assert change.after.get("tacho_requests_in_flight", target=change.target) == 0


@pytest.mark.parametrize("path", ["/return", "/static"])
def test_nginx(cgroups, agree, path):
    group = cgroups("nginx")
    with Nginx(group.prefix, listen="http2") as server, following("nginx", group) as tacho:
        with tacho.watch("nginx") as change:
            counted = h2load(server.url(path), requests=20_011)
        agree(f"nginx HTTP/2 {path}", counted, change)
        check_nothing_lost(change)


@pytest.mark.parametrize("streams", [1, 100])
def test_nghttpd(cgroups, agree, streams):
    group = cgroups("nghttpd")
    with Nghttpd(group.prefix) as server, following("nghttpd", group) as tacho:
        with tacho.watch("nghttpd") as change:
            counted = h2load(server.url(), requests=20_011, streams=streams)
        agree(f"nghttpd, {streams} streams", counted, change)
        check_nothing_lost(change)


def test_grpc(cgroups, agree):
    group = cgroups("grpc")
    with GrpcEcho(group.prefix) as server, following("grpc", group) as tacho:
        with tacho.watch("grpc") as change, grpc.insecure_channel(server.address) as channel:
            unary, stream = channel.unary_unary(UNARY), channel.unary_stream(STREAM)
            pending = [unary.future(b"x" * (100 * number)) for number in range(101)]
            answers = sum(len(call.result(timeout=20)) == 100 * number for number, call in enumerate(pending))
            messages = sum(1 for _ in range(11) for _ in stream(b"y" * 20_000))
            with pytest.raises(grpc.RpcError):
                channel.unary_unary("/tacho.Echo/Missing")(b"", timeout=20)
        assert (answers, messages) == (101, 11 * STREAMED)
        agree("gRPC (Python)", Counted(client="grpc", requests=101 + 11 + 1, seconds=1), change)
        check_nothing_lost(change)


@pytest.mark.parametrize("keys", [{}, {"http2": True}])
@pytest.mark.parametrize("at_a_time", [1, 8])
def test_connections_older_than_tacho(cgroups, agree, keys, at_a_time):
    group = cgroups("grpc")
    with GrpcEcho(group.prefix) as server, grpc.insecure_channel(server.address) as channel:
        unary = channel.unary_unary(UNARY)
        for _ in range(7):
            unary(b"before", timeout=20)
        with following("grpc", group, **keys) as tacho:
            with tacho.watch("grpc") as change, concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
                for answer in [pool.submit(unary, b"after", timeout=20) for _ in range(301)]:
                    answer.result()
            agree(f"gRPC, older connection, {at_a_time} at a time", Counted(client="grpc", requests=301, seconds=1), change)
            check_nothing_lost(change)


def test_node(cgroups, agree):
    group = cgroups("node")
    with Node(group.prefix, protocol="http2") as server, following("node", group) as tacho:
        with tacho.watch("node") as change:
            counted = h2load(f"http://{server.address}/1", requests=5_003, streams=16)
        agree("Node HTTP/2", counted, change)
        check_nothing_lost(change)


def test_upgrade_from_http_1(cgroups, agree):
    """The upgraded request is a turn, its reply comes on stream 1; what follows are streams."""
    group = cgroups("nghttpx")
    with (
        Nginx() as backend,
        Nghttpx(backend.port, group.prefix) as server,
        following("nghttpx", group) as tacho,
    ):
        with tacho.watch("nghttpx") as change:
            command = ["nghttp", "--upgrade", "--null-out", "--stat", "--multiply=3", server.url("/static")]
            report = "\n".join(run(command) for _ in range(23))
        answered = len(re.findall(r" 200 +8K /static$", report, re.M))
        assert answered == 3 * 23
        agree("nghttpx after Upgrade", Counted(client="nghttp", requests=answered, seconds=1), change)
        check_nothing_lost(change)
