"""Minutes of trouble: every scrape is answered within a second, every request is counted, and nothing is left at the end."""

import collections
import contextlib
import functools
import itertools
import os
import random
import time

import pytest

from support import attack, memory, slow
from support.certificate import self_signed
from support.cgroup import Cgroup
from support.clients import ExactLoad
from support.footprint import Footprint
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

from reader import HEADERS, TIMEOUT, Reader, Scrape
from troubles import Troubles

MINUTES = float(os.environ.get("TACHO_SOAK_MINUTES", "5"))
LIMIT = 1.0
RATE = 500
MEBIBYTE = 1 << 20


class TlsTacho(Tacho):
    """One that is asked over TLS."""

    def http(self, path: str, **options):
        status, body = attack.scrape(self.port, tls=True, path=path, headers=HEADERS, timeout=TIMEOUT)
        return status, {}, body

    def web_descriptors(self) -> collections.Counter:
        """Of the process that serves the network, by kind, without what a connection or an answer has for a moment."""
        web = self.web_pid
        readings = []
        for _ in range(20):
            kinds = collections.Counter()
            for entry in os.listdir(f"/proc/{web}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    kinds[os.readlink(f"/proc/{web}/fd/{entry}").partition(":")[0]] += 1
            readings.append(kinds)
            time.sleep(0.05)
        return functools.reduce(lambda some, others: some & others, readings)


@contextlib.contextmanager
def with_memory_of(mebibytes: int):
    """Words before a command that has so much memory, its maps in the kernel included, and what to say of it at the end."""
    if reason := memory.why_not():
        yield (), lambda: f"NO LIMIT OF MEMORY: {reason}"
        return
    with memory.MemoryCgroup("soak") as group:
        group.limit(mebibytes * MEBIBYTE)
        yield group.prefix, lambda: f"{group.most_used / MEBIBYTE:.1f} of {mebibytes} MiB of memory were used at most"


def run_troubles(troubles: Troubles, order: random.Random, until: float) -> list[tuple[float, str]]:
    """In random order, each once before any comes again, and each once at least. Returns when each began."""
    done: list[tuple[float, str]] = []
    while not done or time.monotonic() < until:
        names = sorted(troubles.known)
        order.shuffle(names)
        for name in names:
            done.append((time.monotonic(), name))
            troubles.known[name]()
    return done


def settled(tacho: TlsTacho) -> tuple[Footprint, collections.Counter]:
    """Once nothing is watched but the steady target, and connections have ended."""
    wait_until(lambda: tacho.scrape().get("tacho_targets") == 1, 60, "only the steady target is left")
    wait_until(lambda: tacho.scrape().get("tacho_web_connections") <= 2, 30, "connections have ended")
    return Footprint(tacho), tacho.web_descriptors()


def judge(scrapes: list[Scrape], done: list[tuple[float, str]], alone: float) -> None:
    def during(scrape: Scrape) -> str:
        return next((name for begin, name in reversed(done) if begin <= scrape.begin), "the beginning")

    slowest, longest = (sorted(scrapes, key=key)[-5:] for key in (lambda scrape: scrape.took, lambda scrape: scrape.clock))
    stopped = [scrape for scrape in scrapes if scrape.stopped]
    print(f"{len(done)} troubles, {len(scrapes)} scrapes, {len(stopped)} of them stopped; one alone takes {alone:.2f} s, the slowest:")
    for scrape in slowest:
        print(f"  {scrape.took:.2f} s, {scrape.waited:.2f} s more waited for a CPU: {during(scrape)}")
    print("by the clock:", ", ".join(f"{scrape.clock:.2f} s ({scrape.stopped:.2f} s stopped)" for scrape in longest))
    assert not [(during(scrape), scrape.clock, scrape.fault) for scrape in scrapes if scrape.fault]
    assert stopped, "nobody asked while it was stopped"
    assert slowest[-1].took <= LIMIT + alone, "a scrape was held up"
    for before, after in itertools.pairwise(scrapes):
        rate = (after.counted - before.counted) / (after.begin - before.begin)
        if rate < 0.7 * RATE:
            print(f"  {rate:.0f} requests a second for {after.begin - before.begin:.2f} s, {during(before)} … {during(after)}")
    counted = [scrape.counted for scrape in scrapes]
    assert counted == sorted(counted), "a counter went down"


def soak(config, server, parent, directory, order, **options):
    begin = time.monotonic()
    with TlsTacho(config, **options) as tacho, ExactLoad(server.address, connections=4, rate=RATE) as load:
        tacho.wait_for_target("steady")
        alone = max(attack.times_of_scrapes(tacho.port, 2, tls=True, headers=attack.RIGHT))
        reader = Reader(tacho.port, tacho.pid)
        troubles = Troubles(tacho, directory, parent, order, reader.paused)
        done = run_troubles(troubles, order, begin + min(60, MINUTES * 30))
        before, web_before = settled(tacho)
        done += run_troubles(troubles, order, begin + MINUTES * 60)
        after, web_after = settled(tacho)
        scrapes = reader.finish()
        sent = load.finish().requests
        samples = tacho.settled("steady")
        counted = samples.get("tacho_requests_total", target="steady")
        lost = {labels["reason"]: value for labels, value in samples.all("tacho_lost_events_total") if value}
        turned_away = {labels["reason"]: value for labels, value in samples.all("tacho_web_connections_lost_total")}
        assert tacho.process.running
    for line in tacho.process.output.splitlines():
        if "web process" in line or "hangs" in line:
            print(line)
    print(f"{sent} requests, {counted:.0f} counted, lost {lost}; {before.written / MEBIBYTE:.1f} → {after.written / MEBIBYTE:.1f} MiB")
    print(f"descriptors: collector {dict(after.descriptors)} and {after.sockets} sockets, web {dict(web_after)}")
    print(f"troubles that got there: {dict(troubles.reached)}; connections lost: {turned_away}")
    judge(scrapes, done, alone)
    assert counted == sent, lost
    assert after.map_entries == before.map_entries
    # Targets that ended are kept for ten minutes, with the maps of each: places that come again go on counting.
    maps = after.descriptors.pop("anon_inode") - before.descriptors.pop("anon_inode")
    assert maps % 4 == 0 and maps <= 4 * 32
    assert (after.descriptors, after.sockets) == (before.descriptors, before.sockets)
    assert web_after <= web_before, web_before
    assert after.written - before.written < 12 * MEBIBYTE
    assert samples.get("tacho_web_process_starts_total") == 1, "the process that serves the network ended"
    assert not [name for name, count in troubles.reached.items() if not count], "a trouble was none"


def test_soak(tmp_path):
    if "TACHO_SOAK_MINUTES" not in os.environ and slow.SKIPPED:
        pytest.skip(f"no soak: TACHO_SKIP_SLOW is set, and it takes {MINUTES:.0f} minutes")
    seed = int(os.environ.get("TACHO_SOAK_SEED", time.time()))
    print(f"seed {seed}, {MINUTES:g} minutes")
    certificate, key = self_signed(tmp_path)
    web = tmp_path / "web.yml"
    web.write_text(f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\nbasic_auth_users: {{reader: {attack.HASH}}}\n")
    with (
        with_memory_of(128) as (prefix, used),
        Cgroup("soak") as parent,
        Cgroup("steady", parent) as group,
        ExactServer(group.prefix) as server,
    ):
        config = {
            "targets": [target("steady", group.path), target("come", f"{parent.path}/[cs][0-9]*")],
            "limits": {"max_targets": 64},
        }
        try:
            soak(config, server, parent, tmp_path, random.Random(seed), flags=[f"--web.config.file={web}"], prefix=prefix, start_timeout=60)
        finally:
            print(used())
