"""Nobody stops a scrape: clients without credentials that stall, read slowly, drip or flood, beside a reader."""

import contextlib
import socket
import threading
import time

import pytest

from support import attack
from support.certificate import P256, RSA4096, self_signed
from support.exposition import Samples
from support.servers import ExactServer
from support.slow import slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

SECONDS = 3


def web_config(directory, *, tls=False, users=False, kind=P256):
    text = ""
    if tls:
        certificate, key = self_signed(directory, kind)
        text += f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n"
    if users:
        text += f"basic_auth_users:\n  reader: {attack.HASH}\n"
    path = directory / "web.yml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module", params=["plain", "TLS", "users"])
def served(request, tmp_path_factory):
    """A tacho, and how to scrape it."""
    directory = tmp_path_factory.mktemp("attacks")
    tls, users = request.param == "TLS", request.param == "users"
    flags = [] if request.param == "plain" else [f"--web.config.file={web_config(directory, tls=tls, users=users)}"]
    headers = attack.RIGHT if users else ""
    with Tacho(flags=flags) as tacho:
        yield tacho, {"tls": tls, "headers": headers}


STALLS = [attack.STALLED_GET, attack.HALF_HEAD, attack.WHOLE_GET, b"", b"\x16\x03\x01"]


@pytest.mark.parametrize("rate", slow_but([35, 1000], [35, 100, 1000], "rates between"))
def test_stalls_delay_no_scrape(served, rate):
    tacho, options = served
    most = attack.limit(tacho.port, **options)
    payload = attack.client_hello() if options["tls"] else attack.STALLED_BODY
    with attack.Stalls(tacho.port, payload, rate) as stalls:
        times = attack.times_of_scrapes(tacho.port, SECONDS, **options)
    assert stalls.opened > rate * SECONDS / 2, "the attack was none"
    assert max(times) <= most, f"{rate} stalls a second: the slowest of {len(times)} scrapes took {max(times):.2f} s"


@pytest.mark.parametrize("payload", slow_but([attack.HALF_HEAD, b"\x16\x03\x01"], STALLS, "more of what may be left unsaid"), ids=repr)
def test_other_stalls_delay_no_scrape(served, payload):
    tacho, options = served
    most = attack.limit(tacho.port, **options)
    with attack.Stalls(tacho.port, payload, 300, source="127.0.0.9"):
        times = attack.times_of_scrapes(tacho.port, SECONDS, **options)
    assert max(times) <= most, f"the slowest of {len(times)} scrapes took {max(times):.2f} s"


@pytest.mark.parametrize("sources", [1, 3000], ids=["one source", "3000 sources"])
def test_handshakes_that_cost_much_delay_no_scrape(tmp_path, sources):
    """Each takes milliseconds of the one thread that shakes hands: more of them than it can do."""
    flags = [f"--web.config.file={web_config(tmp_path, tls=True, kind=RSA4096)}"]
    with Tacho(flags=flags) as tacho:
        options = {"tls": True, "source": "127.99.99.99"}
        most = attack.limit(tacho.port, **options)
        with attack.Stalls(tacho.port, attack.client_hello(), 300, sources=sources):
            times = attack.times_of_scrapes(tacho.port, SECONDS, **options)
    assert max(times) <= most, f"the slowest of {len(times)} scrapes took {max(times):.2f} s"


def test_hellos_in_records_of_one_byte_delay_no_scrape(tmp_path):
    """Of the longest hello that may be: each would be read to its end, for as long as more of it comes."""
    hello = b"\x01\x01\xff\x00\x03\x03" + bytes(60_000)
    records = b"".join(b"\x16\x03\x01\x00\x01" + bytes([byte]) for byte in hello)
    with Tacho(flags=[f"--web.config.file={web_config(tmp_path, tls=True)}"]) as tacho:
        options = {"tls": True, "source": "127.99.99.99"}
        most = attack.limit(tacho.port, **options)
        with attack.Callers(tacho.port, records, 2):
            times = attack.times_of_scrapes(tacho.port, SECONDS, **options)
    assert max(times) <= most, f"the slowest of {len(times)} scrapes took {max(times):.2f} s"


FROM_EVERYWHERE = [attack.HALF_HEAD, attack.WHOLE_GET, attack.WHOLE_ELSEWHERE, attack.STALLED_BODY]


@pytest.mark.parametrize("payload", slow_but(FROM_EVERYWHERE[:2], FROM_EVERYWHERE, "more that thousands of sources may ask"), ids=repr)
def test_thousands_of_sources_delay_no_scrape_of_who_was_served_before(served, payload):
    tacho, options = served
    if options["tls"]:
        payload = attack.client_hello()
    most = attack.limit(tacho.port, source="127.99.99.99", **options)
    with attack.Stalls(tacho.port, payload, 1000, sources=5000) as stalls:
        times = attack.times_of_scrapes(tacho.port, SECONDS, source="127.99.99.99", **options)
    assert stalls.opened > 1000 * SECONDS / 4, "the attack was none"
    assert max(times) <= most, f"the slowest of {len(times)} scrapes took {max(times):.2f} s"


@pytest.mark.parametrize("sources", slow_but([34], [34, 130], "more of them"))
def test_who_comes_for_the_first_time_is_served_beside_attackers_who_were_served_before(served, sources):
    tacho, options = served
    stalls = attack.Stalls(tacho.port, attack.HALF_HEAD, 300, sources=sources)
    for source in stalls.sources:
        status, _ = attack.scrape(tacho.port, path="/-/healthy", source=source, **options)
        assert status == 200
    most = attack.limit(tacho.port, **options)
    with stalls:
        # Until they have all places.
        wait_until(lambda: stalls.opened > 900, 20, "the attack")
        times = attack.times_of_scrapes(tacho.port, SECONDS, source="127.0.0.9", **options)
    assert max(times) <= most, f"the slowest of {len(times)} scrapes took {max(times):.2f} s"


def test_a_flood_of_scrapes_delays_no_scrape():
    with Tacho() as tacho:
        most = attack.limit(tacho.port)
        with attack.Crowd(16, lambda: attack.scrape(tacho.port)) as crowd:
            times = attack.times_of_scrapes(tacho.port, SECONDS)
    assert crowd.steps > 16, "the attack was none"
    assert max(times) <= most, f"the slowest of {len(times)} scrapes took {max(times):.2f} s"


def test_who_takes_every_token_of_the_rate_limit_stops_no_reader(tmp_path):
    """`rate_limit` is one bucket for all: who was served before and returns is served beside it."""
    (tmp_path / "web.yml").write_text("rate_limit: {interval: 100ms, burst: 20}\n")

    def read(times: int) -> list[int]:
        status = []
        for _ in range(times):
            status.append(attack.scrape(tacho.port, source="127.99.99.99")[0])
            time.sleep(1.05)  # a scrape interval
        return status

    with Tacho(flags=[f"--web.config.file={tmp_path}/web.yml"]) as tacho:
        assert read(4) == [200] * 4
        with attack.Crowd(8, lambda: attack.scrape(tacho.port, path="/-/healthy")) as crowd:
            wait_until(lambda: attack.scrape(tacho.port, path="/-/healthy")[0] == 429, 10, "the bucket is empty")
            assert read(6) == [200] * 6
    assert crowd.steps > 500, "the attack was none"


def test_what_the_web_server_lost_is_exported(cgroups):
    group = cgroups("counted")
    with ExactServer(group.prefix), Tacho({"targets": [target("counted", group.path)]}) as tacho:
        with socket.create_connection(("127.0.0.1", tacho.port)) as silent:
            assert silent.recv(1) == b"", "closed without an answer"
        samples = tacho.scrape()
        assert samples.get("tacho_web_connections_lost_total", reason="no_request") == 1
        assert samples.get("tacho_web_connections_accepted_total") == 2
        assert samples.get("tacho_web_connections") == 1
        assert samples.get("tacho_log_dropped_lines_total") == 0


NO_TLS = [b"GET / HTTP/0.9\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"a" * 100, b"\x80\x2e\x01", b"PRI * HTTP/2.0\r\n\r\n", b"\0" * 50]


def test_who_says_nonsense_and_leaves_keeps_no_place(tmp_path):
    """By the thousand, from the reader's own address: connections that were reset would fill the gate."""
    stop = threading.Event()
    open_at_once = []
    with Tacho(flags=[f"--web.config.file={web_config(tmp_path, tls=True)}"]) as tacho:

        def say():
            while not stop.is_set():
                for nonsense in NO_TLS:
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", tacho.port)) as client:
                        client.setblocking(False)
                        client.send(nonsense)

        clients = [threading.Thread(target=say) for _ in range(2)]
        for client in clients:
            client.start()
        try:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                status, body = attack.scrape(tacho.port, tls=True)
                assert status == 200
                open_at_once.append(Samples.parse(body.decode()).get("tacho_web_connections"))
        finally:
            stop.set()
            for client in clients:
                client.join()
    assert len(open_at_once) > SECONDS and max(open_at_once) < 450, "512 are all there may be"
