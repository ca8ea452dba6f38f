"""The command line: check, plan, once, and what users are told when something is wrong."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import pytest

from support import paths
from support.certificate import self_signed
from support.cgroup import Cgroup
from support.clients import exact
from support.exposition import Samples
from support.process import Process
from support.servers import ExactServer
from support.tacho import Tacho, target

GOOD = "targets:\n  - name: web\n    cgroup: /system.slice/nginx.service\n"
BAD = "window: 10\ntargets:\n  - name: web\n    cgruop: /x\n  - name: web\n    ports: [70000]\n"
UNPRIVILEGED = {"user": 65534, "group": 65534, "extra_groups": []}


def tacho(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [paths.require(paths.TACHO), *map(str, arguments)], capture_output=True, text=True, timeout=30, **options
    )


@pytest.fixture
def config():
    """Writes a configuration file that everybody may read: config(text)."""
    with tempfile.TemporaryDirectory(prefix="tacho-config-") as directory:
        os.chmod(directory, 0o755)

        def write(text: str) -> pathlib.Path:
            file = pathlib.Path(directory) / "tacho.yaml"
            file.write_text(text)
            return file

        yield write


def test_check_accepts_what_is_good_without_privilege(config):
    file = config(GOOD)
    checked = tacho("check", f"--config.file={file}", **UNPRIVILEGED)
    assert checked.returncode == 0, checked.stderr


def test_a_refused_configuration_is_json_for_who_asked_for_it(config):
    """As in the DaemonSet, whose log is read by programs only (K10)."""
    refused = tacho("--config.file", config(BAD), "--log.format=json")
    assert refused.returncode == 2 and refused.stdout == ""
    lines = [json.loads(line) for line in refused.stderr.splitlines()]
    assert len(lines) >= 3 and {line["level"] for line in lines} == {"error"}
    assert any("cgruop" in line["msg"] for line in lines)


def test_check_names_every_error_with_its_place(config):
    file = config(BAD)
    checked = tacho("check", f"--config.file={file}")
    assert checked.returncode == 2
    places = [line for line in checked.stderr.splitlines() if line.startswith(f"{file}:")]
    assert len(places) >= 3, checked.stderr
    assert all(line.removeprefix(f"{file}:").split(":")[1].isdigit() for line in places)
    assert f"{file}:4:5:" in checked.stderr and "cgroup" in checked.stderr


def test_serve_refuses_a_bad_configuration(config):
    refused = tacho("--web.listen-address=127.0.0.1:0", f"--config.file={config(BAD)}")
    assert refused.returncode == 2
    assert "listening" not in refused.stderr


def test_plan_shows_hooks_and_targets(cgroups, config):
    group = cgroups("planned")
    with ExactServer(group.prefix):
        planned = tacho("plan", f"--config.file={config(f'targets: [{{name: planned, cgroup: {group.path}}}]')}")
    assert planned.returncode == 0, planned.stderr
    assert "planned" in planned.stdout and "socket.send" in planned.stdout


def test_plan_steers_no_terminal_with_names_of_others(cgroups, tmp_path):
    hostile = "\x1b]0;pwn\x07\u202e\r"
    program = tmp_path / hostile
    shutil.copy(paths.EXACT_SERVER, program)
    group = cgroups("terminal")
    with Cgroup("\x1b[2J", group) as inner, Process([program, "--listen=127.0.0.1:0"], prefix=inner.prefix) as server:
        server.wait_for_line("listening")
        planned = tacho("plan")
        assert planned.returncode == 0, planned.stderr
        assert "\\x1b" in planned.stdout, "it is shown"
        assert not [c for c in planned.stdout + planned.stderr if c in "\x1b\x07\r\u202e"]


def test_once_writes_one_exposition(cgroups, config):
    group = cgroups("once")
    with ExactServer(group.prefix):
        once = tacho("once", f"--config.file={config(f'targets: [{{name: once, cgroup: {group.path}}}]')}")
    assert once.returncode == 0, once.stderr
    assert Samples.parse(once.stdout).get("tacho_requests_total", target="once") == 0


WITHOUT_PROC = ["unshare", "--mount", "sh", "-c", 'mount --bind /proc "$0" && mount -t tmpfs none /proc && exec "$@"']


def test_what_cannot_be_read_of_itself_is_no_series(config, tmp_path):
    """Other processes are looked at where --path.procfs says; of itself it knows what /proc has."""
    command = [*WITHOUT_PROC, tmp_path, paths.require(paths.TACHO), "once", f"--path.procfs={tmp_path}", f"--config.file={config('targets: []')}"]
    once = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert once.returncode == 0, once.stderr
    own = {line.split()[0] for line in once.stdout.splitlines() if line.startswith("process_")}
    assert own == {"process_cpu_seconds_total", "process_max_fds"}, "none of them is a guess"


def test_port_in_use_is_a_clear_error(cgroups):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = tacho(f"--web.listen-address=127.0.0.1:{port}")
    assert refused.returncode == 1
    assert f"127.0.0.1:{port}" in refused.stderr and "in use" in refused.stderr


def test_without_privilege_it_says_what_is_missing():
    refused = tacho("--web.listen-address=127.0.0.1:0", **UNPRIVILEGED)
    assert refused.returncode == 1
    assert "CAP_BPF" in refused.stderr, refused.stderr


@pytest.mark.parametrize(("held", "missing"), [("bpf", "CAP_PERFMON"), ("perfmon", "CAP_BPF")])
def test_with_half_the_privilege_it_says_which_half_is_missing(held, missing):
    half = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps=-all,+{held}", f"--ambient-caps=-all,+{held}"]
    refused = subprocess.run([*half, paths.TACHO, "--web.listen-address=127.0.0.1:0"], capture_output=True, text=True, timeout=30)
    assert refused.returncode == 1 and missing in refused.stderr, refused.stderr


def test_whoever_has_both_capabilities_may_be_anybody(cgroups, agree):
    both = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all,+bpf,+perfmon",
            "--ambient-caps=-all,+bpf,+perfmon", "--no-new-privs"]  # fmt: skip
    group = cgroups("anybody")
    with ExactServer(group.prefix) as server, tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        file = pathlib.Path(directory) / "tacho.yaml"
        file.write_text(f"targets: [{{name: anybody, cgroup: {group.path}}}]\n")
        with Tacho(flags=[f"--config.file={file}"], prefix=both) as running, running.watch("anybody") as change:
            counted = exact(server.address, 500, connections=3)
        agree("as uid 65534 with BPF and PERFMON", counted, change)


def test_cgroup_that_does_not_exist_yet_is_a_warning_and_absent():
    with Tacho({"targets": [target("later", "/tacho-no-such-cgroup")]}) as running:
        warned = running.process.wait_for_line("later|tacho-no-such-cgroup", timeout=5)
        assert "warn" in warned.string.lower()
        assert "later" in str(running.targets()["absent"])


def test_unknown_flags_and_commands_are_refused():
    for arguments in (["--web.listen-adress=:1"], ["serv"], ["--config.file=/no/such/file"]):
        refused = tacho(*arguments)
        assert refused.returncode == 2, (arguments, refused.stderr)
        assert refused.stderr.strip()


def health(*arguments) -> tuple[int, str]:
    asked = tacho("health", *arguments, **UNPRIVILEGED)
    return asked.returncode, asked.stderr


def test_health_tells_a_serving_tacho_from_none():
    with Tacho({"targets": []}) as running:
        assert health(f"--web.listen-address={running.address}") == (0, "")
        assert health(f"--web.listen-address=:{running.port}") == (0, "")
    status, said = health(f"--web.listen-address={running.address}")
    assert status == 1 and f"{running.address}: cannot connect" in said and "--url" not in said
    assert health("--web.listen-address=nonsense")[0] == 2


def test_health_speaks_tls_where_the_server_does():
    with tempfile.TemporaryDirectory() as directory:
        certificate, key = self_signed(pathlib.Path(directory))
        os.chmod(directory, 0o755)
        os.chmod(key, 0o644)
        web = pathlib.Path(directory) / "web.yaml"
        web.write_text(f"tls_server_config: {{cert_file: {certificate}, key_file: {key}}}\n")
        with Tacho({"targets": []}, flags=[f"--web.config.file={web}"]) as running:
            assert health(f"--web.listen-address={running.address}", f"--web.config.file={web}") == (0, "")
            status, said = health(f"--web.listen-address={running.address}")
            assert status == 1 and "--web.config.file" in said


def test_health_finds_unix_sockets_and_refuses_other_servers():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)
        place = f"unix:{directory}/tacho.sock"
        with Tacho({"targets": []}, flags=[f"--web.listen-address={place}"]):
            os.chmod(f"{directory}/tacho.sock", 0o777)
            assert health(f"--web.listen-address={place}") == (0, "")
        assert health(f"--web.listen-address={place}")[0] == 1
    with ExactServer() as other:
        status, said = health(f"--web.listen-address={other.address}")
        assert status == 1 and "no answer of an HTTP server" in said


def test_health_waits_only_so_long():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        status, said = health(f"--web.listen-address=127.0.0.1:{silent.getsockname()[1]}")
    assert status == 1 and "no answer" in said
