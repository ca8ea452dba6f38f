"""Durations of the requests of HTTP/2 are what the client measured."""

import contextlib
import time

import grpc
import pytest

from support.clients.curl import curl_times
from support.clients.h2load import h2load_times
from support.durations import check_durations, durations
from support.servers import Burn, Nginx, Node
from support.servers.grpc_echo import WORK, GrpcEcho
from support.tacho import Tacho, target


@contextlib.contextmanager
def nginx_in_front(prefix):
    """Its replies come from a server of one loop, which works for 10 ms on each."""
    with Burn() as back, Nginx(prefix, listen="http2", locations=f"location / {{ proxy_pass http://{back.address}; }}") as front:
        yield front.url("/10")


@contextlib.contextmanager
def node(prefix):
    """The end of a reply is a frame of its own, before which it collects garbage, a fifth of the time that it works: tacho's
    time ends with the first frame, the client's with the last."""
    with Node(prefix, protocol="http2") as server:
        yield f"http://{server.address}/1000"


@pytest.mark.parametrize("streams", [1, 16])
@pytest.mark.parametrize("start", [nginx_in_front, node])
def test_durations_are_those_of_streams(cgroups, start, streams):
    group = cgroups("working")
    with start(group.prefix) as url, Tacho({"targets": [target("working", group.path)]}) as tacho:
        with tacho.watch("working") as change, durations(tacho, "working", change):
            counted, times = h2load_times(url, 211, streams)
        assert change.requests == counted.requests == len(times)
        check_durations(f"{start.__name__}, {streams} streams", change, times, works=start is not node)


@pytest.mark.parametrize("calls", [1, 4])
def test_durations_are_those_of_calls(cgroups, calls):
    """As many at a time as the server has threads."""
    group = cgroups("grpc")
    times = []

    def timed(work):
        began = time.monotonic()
        call = work.future(b"x")
        call.add_done_callback(lambda _: times.append(time.monotonic() - began))
        return call

    with GrpcEcho(group.prefix) as server, Tacho({"targets": [target("grpc", group.path)]}) as tacho:
        with tacho.watch("grpc") as change, durations(tacho, "grpc", change), grpc.insecure_channel(server.address) as channel:
            work = channel.unary_unary(WORK)
            for _ in range(101):
                for call in [timed(work) for _ in range(calls)]:
                    call.result(timeout=20)
        assert change.requests == 101 * calls
        check_durations(f"gRPC (Python), {calls} at a time", change, times)


def test_serial_requests_have_true_times(cgroups):
    """One at a time, half a second and more apart: neither pauses nor acknowledged settings are anybody's time."""
    group = cgroups("server")
    with (
        Burn() as back,
        Nginx(
            group.prefix, tls="TLSv1.3", tls_options="http2", locations=f"location /work/ {{ proxy_pass http://{back.address}/; }}"
        ) as server,
        Tacho({"targets": [target("server", group.path)]}) as tacho,
    ):
        with tacho.watch("server") as change, durations(tacho, "server", change):
            # Milliseconds of work.
            urls = [server.tls_url(f"/work/{work}") for work in [20] * 9 + [60]]
            times = curl_times(urls, 20, http="--http2", a_minute=90)
        assert change.of("tacho_handshakes_total") in (1, 2)
        # A proxy sends head and body apart, and settings may be acknowledged between the two.
        assert change.requests == len(times)
        check_durations("nginx, HTTP/2 over TLS", change, times, known=0.06)
