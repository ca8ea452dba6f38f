"""The harness itself: parsers of what clients print, the exact server against the exact client, waiting."""

import pytest

from support import ledger, net, paths
from support.clients import ExactBatches, ExactLoad, exact
from support.clients.ab import parse as parse_ab
from support.clients.dnsperf import parse as parse_dnsperf
from support.clients.mariadb_slap import parse as parse_mariadb_slap
from support.clients.memcslap import parse as parse_memcslap
from support.clients.pgbench import parse as parse_pgbench
from support.clients.redis_benchmark import parse as parse_redis_benchmark
from support.clients.wrk import parse as parse_wrk
from support.exposition import Change, Samples
from support.process import Process, run
from support.servers import ExactServer
from support.waiting import wait_until

WRK = """Running 4s test @ http://127.0.0.1:80/return
  2 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   131.11us   91.77us   3.10ms   93.93%
  483722 requests in 1.50m, 69.20MB read
Requests/sec: 120913.03
"""
PGBENCH = """number of transactions per client: 11
number of transactions actually processed: 44/44
number of failed transactions: 0 (0.000%)
tps = 12074.643249 (without initial connection time)
"""
REDIS = """GET: rps=0.0 (overall: nan) avg_msec=nan\rGET: rps=99.0 avg_msec=0.1\r====== GET ======
  400000 requests completed in 5.18 seconds
  20 parallel clients
"""
MEMCSLAP = """Time to generate       2003 test keys:                0.004 seconds.
Time to set            2003 keys:                     0.204 seconds.
Time to start             4 threads:                  0.000 seconds.
Time to get            8012 keys by    4 threads:     0.270 seconds.
Time total:                                           0.478 seconds.
"""
AB = """Concurrency Level:      4
Time taken for tests:   0.250 seconds
Complete requests:      1009
Failed requests:        0
Total transferred:      100 bytes
"""
DNSPERF = """  Queries sent:         1009
  Queries completed:    1009 (100.00%)
  Queries lost:         0 (0.00%)
  Run time (s):         0.239693
  Average Latency (s):  0.000197 (min 0.000010, max 0.002000)
"""
MARIADB_SLAP = """Benchmark
\tAverage number of seconds to run all queries: 0.021 seconds
\tNumber of clients running queries: 4
\tAverage number of queries per client: 250
"""


def test_wrk_counts_what_it_got():
    counted = parse_wrk(WRK, connections=16)
    assert (counted.requests, counted.seconds) == (483722, 90.0)
    assert counted.admits(483722) and counted.admits(483738)
    assert not counted.admits(483721) and not counted.admits(483739)


@pytest.mark.parametrize("trouble", ["  Socket errors: connect 0, read 1, write 0, timeout 0", "  Non-2xx or 3xx responses: 5"])
def test_wrk_with_errors_counts_nothing(trouble):
    with pytest.raises(ValueError, match="errors"):
        parse_wrk(WRK + trouble, connections=16)


def test_ab_counts_what_was_answered():
    counted = parse_ab(AB, in_flight=4)
    assert (counted.requests, counted.seconds) == (1009, 0.25)
    assert counted.admits(1013) and not counted.admits(1008) and not counted.admits(1014)
    assert not parse_ab(AB, in_flight=0).admits(1010)
    with pytest.raises(ValueError):
        parse_ab(AB.replace("Failed requests:        0", "Failed requests:        3"), in_flight=0)
    with pytest.raises(ValueError, match="refused"):
        parse_ab(AB + "Non-2xx responses:      1\n", in_flight=0)


def test_dnsperf_counts_only_without_losses():
    counted = parse_dnsperf(DNSPERF)
    assert (counted.requests, counted.seconds, counted.latency) == (1009, 0.239693, 0.000197)
    assert counted.admits(1009) and not counted.admits(1010)
    with pytest.raises(ValueError):
        parse_dnsperf(DNSPERF.replace("lost:         0", "lost:         1"))


def test_mariadb_slap_logs_in():
    counted = parse_mariadb_slap(MARIADB_SLAP)
    assert counted.requests == 1000
    assert counted.admits(1005) and not counted.admits(1004) and not counted.admits(1006)


def test_pgbench_adds_its_log_ins():
    counted = parse_pgbench(PGBENCH, connections=4)
    assert counted.requests == 44
    assert counted.admits(51) and not counted.admits(50) and not counted.admits(52)
    with pytest.raises(ValueError):
        parse_pgbench(PGBENCH.replace("transactions: 0 ", "transactions: 1 "), connections=4)


def test_redis_benchmark_asks_for_the_configuration():
    counted = parse_redis_benchmark(REDIS)
    assert (counted.requests, counted.seconds) == (400_000, 5.18)
    assert [extra for extra in range(4) if counted.admits(400_000 + extra)] == [1, 2]


def test_memcslap_stores_and_reads():
    counted = parse_memcslap(MEMCSLAP)
    assert counted.requests == 2003 + 8012
    assert counted.seconds == pytest.approx(0.474)
    with pytest.raises(ValueError):
        parse_memcslap("")


@pytest.mark.parametrize("mode", ["single", "threads", "epoll", "prefork"])
@pytest.mark.parametrize("per_connection", [0, 1])
def test_exact_server_and_client_agree(mode, per_connection):
    with ExactServer(mode=mode, workers=4, sends=3, read_chunk=16) as server:
        counted = exact(server.address, 211, connections=5, requests_per_connection=per_connection)
        served = server.finish()
    assert counted.requests == served["requests"] == 211
    assert served["sends"] == 3 * 211 and served["receives"] == 4 * 211
    assert served["received_bytes"] == served["sent_bytes"] == 64 * 211
    assert served["connections"] == (211 if per_connection else 5)


@pytest.mark.parametrize("listen", ["[::1]:0", "unix:@tacho-harness"])
def test_other_addresses(listen):
    with ExactServer(listen=listen) as server:
        assert exact(server.address, 23).requests == 23


def test_known_delays_are_kept():
    with ExactServer(read_delay_us=2000, reply_delay_us=3000) as server:
        exact(server.address, 23)
        served = server.finish()
    assert 23 * 0.002 <= served["queue_seconds"] < 23 * 0.004
    assert 23 * 0.003 <= served["service_seconds"] < 23 * 0.006


def test_batches_keep_their_connections():
    with ExactServer() as server, ExactBatches(server.address, connections=3) as batches:
        assert batches.send(23).requests == 23
        assert batches.send(101).requests == 101
        assert server.finish()["connections"] == 3


def test_load_until_stopped_keeps_its_rate():
    with ExactServer() as server, ExactLoad(server.address, connections=2, rate=500) as load:
        wait_until(lambda: load.process.running, 1, "the client runs")
        counted = load.finish()
        assert server.finish()["requests"] == counted.requests


def test_lost_replies_are_errors():
    server = ExactServer()
    with ExactBatches(server.address) as batches:
        batches.send(1)
        server.finish()
        with pytest.raises((RuntimeError, TimeoutError)):
            batches.send(1)


def test_samples_are_found_by_the_labels_that_matter():
    samples = Samples.parse('# TYPE a counter\na_total{target="x",direction="send"} 3\na_total{target="y"} 4\n')
    assert samples.get("a_total", target="x") == 3
    assert samples.sum("a_total") == 7
    with pytest.raises(KeyError):
        samples.get("a_total", target="z")
    with pytest.raises(ValueError):
        samples.get("a_total")


def test_changes_are_differences():
    text = '# TYPE tacho_requests counter\ntacho_requests_total{{target="x"}} {}\n'
    change = Change(Samples.parse(text.format(4)), Samples.parse(text.format(27)), "x")
    assert change.requests == 23


def test_openmetrics_is_read_strictly():
    with pytest.raises(ValueError):
        Samples.parse("# TYPE a counter\na_total 1\n", openmetrics=True)  # no # EOF


def test_processes_report_how_they_end():
    with pytest.raises(RuntimeError, match="ended with 3:\nwhy"):
        run(["sh", "-c", "echo why; exit 3"])
    with pytest.raises(TimeoutError, match="ended without a line"):
        Process(["echo", "no"]).wait_for_line("yes", timeout=5)


def test_waiting_names_what_it_saw():
    with pytest.raises(TimeoutError, match=r"the moon \(last look: KeyError\('cheese'\)\)"):
        wait_until(lambda: {}["cheese"], 0.02, "the moon")


def test_no_port_is_given_twice():
    ports = [net.free_port() for _ in range(2000)]
    assert len(set(ports)) == len(ports)


def test_table_is_aligned():
    assert ledger.table([]) == ""
    text = ledger.table([["nginx", "wrk", "10", 12, 24]])
    assert text.splitlines()[0].split("  ") == [*ledger.HEADINGS]
    assert text.splitlines()[2].endswith("           12     24")


def test_missing_program_says_how_to_build():
    with pytest.raises(FileNotFoundError, match="cmake --build"):
        paths.require(paths.BUILD / "no-such-program")
