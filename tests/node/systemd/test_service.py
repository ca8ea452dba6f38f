"""The package's unit under a real systemd: it is started when it serves, fails when it must, and keeps two capabilities."""

import re

import pytest

from support import systemd
from support.clients import exact
from support.exposition import Samples
from support.net import exchange
from support.privilege import why_not
from support.waiting import wait_until

BROKEN = "window: 10 parsecs\n"


@pytest.fixture(scope="module")
def booted():
    if reason := why_not() or systemd.why_not():
        pytest.skip(reason)
    with systemd.Machine() as running:
        yield running


@pytest.fixture
def machine(booted):
    """With the service stopped, its configuration that of the package, and no drop-in, before and after."""
    yield booted
    booted.command("systemctl", "stop", "tacho", "web")
    booted.command("systemctl", "reset-failed")
    booted.write("etc/tacho/tacho.yaml", (systemd.REPOSITORY / "config/tacho.yaml").read_text())
    booted.command("rm", "-rf", "/etc/systemd/system/tacho.service.d")
    booted.command("systemctl", "daemon-reload")


def scrape() -> Samples:
    return Samples.parse(exchange("127.0.0.1:9435", "/metrics")[2].decode())


def start(machine) -> None:
    status, said = machine.command("systemctl", "start", "tacho")
    assert status == 0, f"{said}\n{machine.journal()}"


def test_it_is_started_when_it_serves_and_ends_at_once(machine):
    start(machine)
    # No waiting: this is what the start waited for.
    samples = scrape()
    assert machine.property("ActiveState") == "active" and machine.property("StatusText") == "serves"
    attached = samples.all("tacho_probe_attached")
    assert attached and all(value == 1 for _, value in attached), "with the unit's two capabilities and mounts"
    status, said = machine.command("systemctl", "stop", "tacho")
    assert status == 0, said
    assert machine.property("Result") == "success" and machine.property("ExecMainStatus") == "0"


def test_it_counts_a_service_of_the_machine(machine):
    start(machine)
    status, said = machine.command("systemd-run", "--unit=web", "/usr/bin/exact_server", "--listen=127.0.0.1:8099")
    assert status == 0, said
    wait_until(lambda: scrape().has("tacho_target_info", unit="web.service"), 5, "the service is a target")
    assert exact("127.0.0.1:8099", 103).requests == 103
    wait_until(lambda: scrape().sum("tacho_requests_total", target="web.service") == 103, 5, "all are counted")


# `cat` is a server that answers with what it is asked.
PER_CONNECTION = {
    "echo.socket": "[Socket]\nListenStream=127.0.0.1:8097\nAccept=yes\n",
    "echo@.service": "[Service]\nExecStart=/bin/cat\nStandardInput=socket\n",
}


def test_services_that_are_started_for_a_connection_are_one_target(machine):
    for name, text in PER_CONNECTION.items():
        machine.write(f"etc/systemd/system/{name}", text)
    machine.command("systemctl", "daemon-reload")
    start(machine)
    status, said = machine.command("systemctl", "start", "echo.socket")
    assert status == 0, said
    try:
        # Whoever comes first may be gone before it is known that there is such a service.
        assert exact("127.0.0.1:8097", 1).requests == 1
        wait_until(lambda: scrape().has("tacho_requests_total", target="echo@.service"), 5, "the template is a target")
        before = scrape().get("tacho_requests_total", target="echo@.service")
        for each in (1, 3):
            # From the very first request of each connection on.
            exact("127.0.0.1:8097", 20 * each, requests_per_connection=each)
        wait_until(lambda: scrape().get("tacho_requests_total", target="echo@.service") == before + 80, 5, "all are counted")
        wait_until(lambda: machine.property("NConnections", "echo.socket") == "0", 5, "no connection is left")
        exact("127.0.0.1:8097", 7)
        wait_until(lambda: scrape().get("tacho_requests_total", target="echo@.service") == before + 87, 5, "those, too")
        assert not scrape().all("tacho_requests_total", target="echo.socket"), "and it is no target twice"
    finally:
        machine.command("systemctl", "stop", "echo.socket")


def test_lines_have_their_priorities(machine):
    start(machine)
    lines = machine.journal()
    assert not [text for _, text in lines if text.startswith("<")], "the journal takes the prefixes off"
    levels = {level: {priority for priority, text in lines if f" {level} " in text} for level in ("INFO", "WARN")}
    # It warns of its PID namespace: this machine is no real one.
    assert levels == {"INFO": {6}, "WARN": {4}}


def test_a_refused_configuration_fails_the_start_once(machine):
    machine.write("etc/tacho/tacho.yaml", BROKEN)
    status, said = machine.command("systemctl", "start", "tacho")
    assert status != 0 and "failed" in said
    assert machine.property("ExecMainStatus") == "2" and machine.property("NRestarts") == "0"
    assert any("tacho.yaml:1:9" in text for _, text in machine.journal())


def test_one_that_can_count_no_request_does_not_start(machine):
    # This kernel has no kprobes.
    machine.write("etc/tacho/tacho.yaml", "probes: {socket: {attach: kprobe}}\n")
    status, said = machine.command("systemctl", "start", "tacho")
    assert status != 0 and "failed" in said
    assert machine.property("ExecMainStatus") == "1"


def test_a_refused_configuration_fails_the_reload_and_the_old_one_stays(machine):
    start(machine)
    process = machine.property("MainPID")
    machine.write("etc/tacho/tacho.yaml", BROKEN)
    assert machine.command("systemctl", "reload", "tacho")[0] != 0
    assert machine.property("ActiveState") == "active" and machine.property("MainPID") == process
    machine.write("etc/tacho/tacho.yaml", "window: 20s\n")
    before = scrape().get("tacho_config_last_reload_success_timestamp_seconds")
    assert machine.command("systemctl", "reload", "tacho")[0] == 0
    wait_until(lambda: scrape().get("tacho_config_last_reload_success_timestamp_seconds") > before, 5, "it is read")
    assert machine.property("MainPID") == process
    assert "read again" in machine.property("StatusText")


def test_one_that_is_stuck_is_ended_and_started_again(machine):
    machine.write("etc/systemd/system/tacho.service.d/soon.conf", "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n")
    machine.command("systemctl", "daemon-reload")
    start(machine)
    process = machine.property("MainPID")
    machine.command("kill", "-STOP", process)
    wait_until(lambda: machine.property("NRestarts") == "1", 15, "it is started again", interval=0.2)
    wait_until(lambda: machine.property("ActiveState") == "active", 10, "it serves again", interval=0.2)
    assert machine.property("MainPID") != process and scrape().has("tacho_build_info")


def test_the_drop_in_for_kprobes_gives_what_they_need(machine):
    drop_in = systemd.PACKAGE / "kprobes.conf"
    # As the log and the file itself tell to install it.
    assert re.search(r"/usr/share/tacho/kprobes.conf /etc/systemd/system/tacho.service.d/kprobes.conf", drop_in.read_text())
    run_there = ["systemctl", "show", "--property=CapabilityBoundingSet", "--value", "tacho"]
    assert "cap_sys_admin" not in machine.command(*run_there)[1]
    machine.write("etc/systemd/system/tacho.service.d/kprobes.conf", drop_in.read_text())
    machine.command("systemctl", "daemon-reload")
    assert set(machine.command(*run_there)[1].split()) == {"cap_bpf", "cap_perfmon", "cap_sys_admin"}
    start(machine)
    process = machine.property("MainPID")
    mounts = machine.command("cat", f"/proc/{process}/mountinfo")[1].splitlines()
    tracing = [line.split()[5].split(",") for line in mounts if line.split()[4] == "/sys/kernel/tracing"]
    assert tracing and "rw" in tracing[-1]
