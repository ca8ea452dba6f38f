"""The engine is restarted, and containers come and go by the dozen, while tacho counts."""

import threading

import pytest

from support.docker import DockerTacho, Server
from support.engine import at_once
from support.waiting import wait_until

PRIME = 97


class Scrapes:
    """Scrapes five times a second until the `with` is left: how long the slowest one took."""

    def __init__(self, tacho: DockerTacho):
        self._tacho, self._done, self.slowest, self.failed = tacho, threading.Event(), 0.0, []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._done.wait(0.2):
            try:
                self.slowest = max(self.slowest, self._tacho.timed_text()[1])
            except OSError as error:
                self.failed.append(repr(error))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


@pytest.fixture
def tacho(engine):
    # On the engine's own network: docker-proxy, by which a published port answers, ends with dockerd.
    with DockerTacho(engine, "--network", "host") as running:
        yield running


def counts(tacho: DockerTacho, server: Server, requests: int) -> None:
    """Has a server answer so many more requests, all of which are counted."""
    wait_until(lambda: tacho.scrape().has("tacho_target_info", container_id=server.id), 5, f"{server.name} is a target")
    before = tacho.scrape().sum("tacho_requests_total", container=server.name)
    server.serve(requests)
    wait_until(lambda: tacho.scrape().sum("tacho_requests_total", container=server.name) == before + requests, 10,
               f"{requests} of {server.name} are counted", interval=0.2)  # fmt: skip


def test_restarts_of_the_engine_lose_nothing(engine, tacho):
    with Server(engine, "web") as server:
        counts(tacho, server, PRIME)
        for number, restart in enumerate((engine.restart_dockerd, engine.restart_containerd, engine.restart_dockerd), 2):
            with Scrapes(tacho) as scrapes:
                restart()
                counts(tacho, server, PRIME)
                with Server(engine, f"late-{number}") as late:
                    counts(tacho, late, PRIME)
            assert not scrapes.failed and scrapes.slowest < 1, (scrapes.failed, scrapes.slowest)
            assert tacho.scrape().get("tacho_requests_total", container="web") == number * PRIME, "none is forgotten"


def test_containers_come_and_go(engine, tacho, churn):
    def live(name: str) -> None:
        with Server(engine, name) as server:
            counts(tacho, server, PRIME)

    with Scrapes(tacho) as scrapes:
        at_once(live, [f"churn-{number}" for number in range(churn)])
    assert not scrapes.failed and scrapes.slowest < 1, (scrapes.failed, scrapes.slowest)

    def left() -> list[str]:
        return [labels["container"] for labels, _ in tacho.scrape().all("tacho_target_info")
                if labels.get("container", "").startswith("churn-")]  # fmt: skip

    wait_until(lambda: left() == [], 30, "who is gone has left", interval=0.5)
