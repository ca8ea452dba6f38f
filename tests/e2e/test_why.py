"""`tacho why`: what requests wait for, in a sentence, a table and a metric. How often it is right: tests/validation/WAITS.md."""

import json
import subprocess

from support import paths
from support.clients.open_loop import OpenLoop
from support.servers import Gunicorn, Script
from support.tacho import Tacho, target
from support.waiting import wait_until


def ask(tacho, *arguments) -> subprocess.CompletedProcess:
    command = [paths.require(paths.TACHO), "why", "--url", f"http://{tacho.address}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def told(tacho) -> dict:
    answer = ask(tacho, "--json")
    targets = json.loads(answer.stdout)["targets"] if answer.returncode == 0 else []
    return targets[0] if targets else {}


def test_a_lock_that_somebody_keeps(cgroups):
    group = cgroups("why")
    config = {"window": "2s", "targets": [target("why", group.path)], "probes": {"anatomy": {"enabled": True, "slow": "20ms"}}}
    with (
        Script("delayed.py") as backend,
        Gunicorn(group.prefix, "gthread", 1, module="stages", env={"DEPENDENCY": backend.address}) as server,
        OpenLoop(server.address, "http", "/cln", connections=4) as client,
        Tacho(config) as tacho,
    ):
        assert ask(tacho).returncode == 1
        client.start(100, 30, seed=1)
        wait_until(lambda: told(tacho).get("five_minutes"), 20, "tacho knows what was before")
        with OpenLoop(server.address, "http", "/hold", connections=1) as control:
            control.run(100, 0.01)
        found = wait_until(lambda: told(tacho) if (told(tacho).get("cause") or {}).get("name") == "lock" else None, 20, "the lock is named")
        assert found["verdict"] == "slower"
        now = found["now"]
        assert sum(now["parts"].values()) >= 0.99 * now["mean"] and max(now["parts"], key=now["parts"].get) == "lock"
        assert now["requests"] >= 100
        table = ask(tacho, "why")
        print(table.stdout)
        lines = table.stdout.splitlines()
        assert lines[0] == "why" and "more they wait for a lock" in lines[1] and "look at: Who holds it" in table.stdout
        wait_until(lambda: tacho.scrape().all("tacho_bottleneck", target="why", part="lock"), 20, "the bottleneck is a metric")
        row = json.loads(tacho.http("/api/v1/targets")[2])["rows"][0]
        detail = json.loads(tacho.http(f"/api/v1/target?id={row['id']}")[2])
        assert "they wait for a lock" in detail["why"]
        with OpenLoop(server.address, "http", "/free", connections=1) as control:
            control.run(100, 0.01)
        none = ask(tacho, "no such target")
        assert none.returncode == 1 and none.stderr == "tacho: no target matches no such target\n"
        assert json.loads(tacho.http("/api/v1/why?ids=0000000000000000,x")[2])["targets"] == []


def test_nothing_is_said_without_anatomy(cgroups):
    group = cgroups("quiet")
    with Gunicorn(group.prefix, module="application") as server, Tacho({"targets": [target("quiet", group.path)]}) as tacho:
        with OpenLoop(server.address, "http", "/", connections=2, reconnect=True) as client:
            client.run(20, 1)
        answer = ask(tacho)
        assert answer.returncode == 1 and "anatomy: {enabled: true}" in answer.stderr
        assert not tacho.scrape().all("tacho_bottleneck")
