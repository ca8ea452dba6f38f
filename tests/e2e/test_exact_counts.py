"""Known numbers of requests, primes throughout: no server model, connection pattern or way of replying may change the count."""

import pytest

from support.clients import ExactLoad, exact
from support.servers import ExactServer
from support.tacho import Tacho, target

MODES = ["single", "threads", "epoll", "prefork"]


def observe(group, server_options, load):
    """Runs load(address) against a server in the cgroup. Returns (what the client counted, tacho's change, the server's tally)."""
    with ExactServer(group.prefix, **server_options) as server, Tacho({"targets": [target("exact", group.path)]}) as tacho:
        with tacho.watch("exact") as change:
            counted = load(server.address)
        return counted, change, server.finish()


def assert_exact(change, served):
    """Every figure equals what the server itself counted."""
    assert change.requests == served["requests"]
    assert change.sends == served["sends"]
    assert change.receives == served["receives"]
    assert change.of("tacho_socket_bytes_total", direction="send") == served["sent_bytes"]
    assert change.of("tacho_socket_bytes_total", direction="receive") == served["received_bytes"]
    for histogram in ("duration", "queue", "service"):
        assert change.of(f"tacho_request_{histogram}_seconds_count") == served["requests"], histogram


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("connections", [1, 17])
def test_keep_alive(cgroups, agree, mode, connections):
    counted, change, served = observe(
        cgroups("exact"), {"mode": mode, "workers": connections}, lambda address: exact(address, 10_007, connections=connections)
    )
    agree(f"{mode}, {connections} connections kept", counted, change)
    assert_exact(change, served)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("connections", [1, 5])
def test_connection_per_request(cgroups, agree, mode, connections):
    counted, change, served = observe(
        cgroups("exact"),
        {"mode": mode},
        lambda address: exact(address, 2003, connections=connections, requests_per_connection=1),
    )
    agree(f"{mode}, connection per request, {connections} at once", counted, change)
    assert served["connections"] == 2003
    assert_exact(change, served)


@pytest.mark.parametrize("mode", ["threads", "epoll"])
def test_connections_that_are_reset_right_behind_the_reply(cgroups, agree, mode):
    """The reset overtakes the hook of the send: what was answered is answered."""
    counted, change, served = observe(
        cgroups("exact"),
        {"mode": mode},
        lambda address: exact(address, 20_011, connections=4, requests_per_connection=1, resets="true"),
    )
    agree(f"{mode}, a reset right behind each reply", counted, change)
    assert served["connections"] == 20_011
    assert_exact(change, served)
    assert change.of("tacho_requests_unanswered_total") == 0
    assert change.after.get("tacho_requests_in_flight", target="exact") == 0


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::1]:0"])
def test_replies_in_several_sends_and_requests_in_several_receives(cgroups, agree, listen):
    counted, change, served = observe(
        cgroups("exact"),
        {"mode": "threads", "sends": 3, "request_bytes": 1000, "read_chunk": 100, "reply_bytes": 3000, "listen": listen},
        lambda address: exact(address, 1009, connections=4, request_bytes=1000, reply_bytes=3000),
    )
    agree(f"10 receives, 3 sends a request, {listen}", counted, change)
    assert served["sends"] == 3 * 1009 and served["receives"] == 10 * 1009
    assert_exact(change, served)


def test_several_client_processes(cgroups, agree):
    def load(address):
        loads = [ExactLoad(address, requests=prime, connections=3) for prime in (1009, 2003, 3001)]
        counts = [load.result() for load in loads]
        return type(counts[0])("exact_client × 3", sum(c.requests for c in counts), max(c.seconds for c in counts))

    counted, change, served = observe(cgroups("exact"), {"mode": "epoll"}, load)
    agree("epoll, 3 client processes", counted, change)
    assert served["requests"] == 1009 + 2003 + 3001
    assert_exact(change, served)


def test_targets_do_not_mix(cgroups):
    groups = {name: cgroups(name) for name in ("left", "right", "idle")}
    primes = {"left": 1009, "right": 503, "idle": 0}
    config = {"targets": [target(name, group.path) for name, group in groups.items()]}
    with (
        ExactServer(groups["left"].prefix) as left,
        ExactServer(groups["right"].prefix) as right,
        ExactServer(groups["idle"].prefix),
        ExactServer() as unwatched,
        Tacho(config) as tacho,
    ):
        tacho.wait_for_target("right")
        loads = [
            ExactLoad(left.address, requests=primes["left"], connections=2),
            # This client belongs to a target, too: what it sends is no request served there.
            ExactLoad(right.address, requests=primes["right"], connections=2, prefix=groups["idle"].prefix),
            ExactLoad(unwatched.address, requests=2003),
        ]
        for load in loads:
            load.result()
        for name, requests in primes.items():
            assert tacho.settled(name).get("tacho_requests_total", target=name) == requests, name
