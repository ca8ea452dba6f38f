"""Whose requests they are: names that two servers share, and cgroups made to look like another's container."""

import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support import net, paths
from support.clients import exact
from support.node import NODE, RUNTIMES, Node, Pod
from support.process import Process
from support.servers import ExactServer
from support.tacho import Tacho
from support.waiting import wait_until

WITHOUT_POLLS = {"probes": {"poll": {"enabled": False}}, "limits": {"max_targets": 1000}}
API = Pod("shop", "api-6d4cf56db6-x2x7k", ["api"], workload=("api", "Deployment"))
USER = "user.slice/user-1000.slice/user@1000.service"


def started_in(directory) -> ExactServer:
    directory.mkdir(parents=True, exist_ok=True)
    return ExactServer(["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(directory / "cgroup.procs")])


@pytest.fixture
def root(cgroups):
    return cgroups("identity")


@pytest.mark.parametrize(
    "place",
    [
        USER + "/app.slice/cri-containerd-{id}.scope",
        USER + "/kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{id}.scope",
        USER + "/docker/{id}",
        "system.slice/ci.service/kubepods/pod{uid}/{id}",
        "docker/" + "e" * 64 + "/kubepods/pod{uid}/{id}",
        "jobs/{id}",
    ],
)
@pytest.mark.parametrize("forged_first", [False, True])
def test_nobody_writes_into_the_series_of_anothers_container(root, tmp_path, place, forged_first):
    node = Node(root, tmp_path / "log", RUNTIMES["containerd, systemd"])
    forged = root.directory / place.format(id=API.id_of("api"), uid=API.uid)
    labels = {"namespace": "shop", "pod": API.name, "container": "api"}
    if forged_first:
        forged.mkdir(parents=True)
    node.add(API)
    configuration = {**WITHOUT_POLLS, "targets": [{"name": "node", "container": {"namespace": "*"}}],
                     "discovery": {"listeners": "always"}}  # fmt: skip
    flags = [f"--path.log={node.log}", f"--path.lib={node.log}", f"--node.name={NODE}"]
    own = node.directory(node.path_of(API, "api"))
    with Tacho(configuration, flags=flags) as tacho, started_in(own) as server, started_in(forged) as impostor:
        wait_until(lambda: tacho.scrape().has("tacho_requests_total", **labels), 3, "the container is named")
        exact(server.address, 23)
        exact(impostor.address, 500)
        tacho.settled("node")
        series = tacho.scrape().all("tacho_requests_total", **labels)
        assert [value for _, value in series] == [23], series


def test_servers_of_one_name_are_targets_of_their_own(root):
    places = {
        f"{USER}/app.slice/web.service": "user@1000/web.service",
        f"{USER.replace('1000', '1001')}/app.slice/web.service": "user@1001/web.service",
        "system.slice/web.service": "web.service",
        "machine.slice/machine-vm.scope/payload/system.slice/web.service": "vm/web.service",
    }
    requests = dict(zip(places, (101, 102, 203, 57), strict=True))
    servers = {}
    try:
        for place in places:
            servers[place] = started_in(root.directory / place).__enter__()
        with Tacho(WITHOUT_POLLS) as tacho:
            for place, target in places.items():
                tacho.wait_for_target(target)
                exact(servers[place].address, requests[place])
            counted = {place: tacho.settled(target).get("tacho_requests_total", target=target)
                       for place, target in places.items()}  # fmt: skip
            assert counted == requests
    finally:
        for server in servers.values():
            server.__exit__(None, None, None)


def docker_says(lib, number: str, name: str) -> None:
    """As the engine writes it: a new file in the place of the old one."""
    directory = lib / "docker" / "containers" / number
    directory.mkdir(parents=True, exist_ok=True)
    config = {"Image": "nginx:1.27", "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "front"}}
    fresh = directory / "config.v2.json.fresh"
    fresh.write_text(json.dumps({"Name": f"/{name}", "Config": config}))
    fresh.rename(directory / "config.v2.json")


def test_a_renamed_container_and_the_next_of_its_name_are_two_series(root, tmp_path):
    first, second = "1" * 64, "2" * 64
    docker_says(tmp_path, first, "web")
    with started_in(root.directory / "docker" / first) as old, \
         Tacho(WITHOUT_POLLS, flags=[f"--path.lib={tmp_path}"]) as tacho:  # fmt: skip
        tacho.wait_for_target("web")
        exact(old.address, 100)
        tacho.settled("web")
        docker_says(tmp_path, first, "web-old")
        docker_says(tmp_path, second, "web")
        with started_in(root.directory / "docker" / second) as new:
            tacho.wait_for_target("web-old")
            wait_until(lambda: tacho.scrape().has("tacho_target_info", target="web", container_id=second), 3, "the new one")
            exact(old.address, 7)
            exact(new.address, 50)
            assert tacho.settled("web-old").get("tacho_requests_total", target="web-old") == 7
            # The name's series goes on, as for a container that is restarted under it.
            assert tacho.settled("web").get("tacho_requests_total", target="web") == 150
            info = tacho.scrape().all("tacho_target_info", target="web")
            assert len(info) == 1
            assert {name: info[0][0].get(name) for name in ("image", "compose_project", "compose_service")} == {
                "image": "nginx:1.27", "compose_project": "shop", "compose_service": "front",
            }  # fmt: skip


def test_a_container_is_named_wherever_its_cgroup_lies_and_nothing_happens_to_a_rename_alone(root, tmp_path):
    number = "3" * 64
    docker_says(tmp_path, number, "job")
    with started_in(root.directory / "nightly" / number), Tacho(WITHOUT_POLLS, flags=[f"--path.lib={tmp_path}"]) as tacho:
        tacho.wait_for_target("job")
        docker_says(tmp_path, number, "job-2")
        tacho.wait_for_target("job-2", timeout=6)


# Those of the package's unit; without CAP_SYS_PTRACE /proc/PID/exe of other users' processes may not be read.
RIGHTS_OF_THE_UNIT = ["setpriv", "--bounding-set=-all,+bpf,+perfmon", "--inh-caps=-all", "--no-new-privs"]


def test_an_executable_is_known_under_the_rights_of_the_unit():
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory).chmod(0o755)
        program = pathlib.Path(directory) / "a-server-with-a-long-name (deleted)"
        shutil.copy(paths.require(paths.EXACT_SERVER), program)
        port = net.free_port()
        server = Process([program, f"--listen=127.0.0.1:{port}"], user=65534)
        with server:
            server.wait_for_line(r"^listening (\S+)$")
            refused = Process([*RIGHTS_OF_THE_UNIT, "readlink", f"/proc/{server.pid}/exe"])
            assert refused.wait() != 0, "this test would pass without the kernel's word"
            configuration = {**WITHOUT_POLLS, "targets": [{"name": "mine", "process": {"exe": str(program)}}]}
            with Tacho(configuration, prefix=RIGHTS_OF_THE_UNIT) as tacho:
                exact(f"127.0.0.1:{port}", 107)
                assert tacho.settled("mine").get("tacho_requests_total", target="mine") == 107
            with Tacho(WITHOUT_POLLS, prefix=RIGHTS_OF_THE_UNIT) as tacho:
                tacho.wait_for_target(f"{program.name}:{port}")


def test_the_log_names_targets_that_come_and_go_and_plan_shows_what_is_not_seen(root):
    # A line has the first eight names: other tests' servers come and go meanwhile, and none of theirs is before this one.
    hidden = root.directory / "system.slice" / "!turned\u202eabc.service"
    with Tacho(WITHOUT_POLLS) as tacho:
        with started_in(hidden):
            tacho.wait_for_target(hidden.name)
            written = subprocess.run([paths.require(paths.TACHO), "plan"], capture_output=True, text=True, timeout=60)
            assert "!turned\\xe2\\x80\\xaeabc.service" in written.stdout and "\u202e" not in written.stdout
            line = tacho.process.wait_for_line(r"INFO \d+ targets?; new: .*turned", timeout=15)
        tacho.process.wait_for_line(r"INFO \d+ targets?; .*gone: .*turned", timeout=30)
        assert line


# Thirty programs that listen and do nothing, and end with their parent.
CROWD = """
import ctypes, os, socket, time
for number in range(1, 31):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9)
        listener = socket.socket()
        listener.bind((f"127.0.77.{number}", 0))
        listener.listen()
        break
else:
    print("up", flush=True)
time.sleep(600)
"""


def test_one_users_programs_leave_places_for_others(root):
    with contextlib.ExitStack() as stack:
        tacho = stack.enter_context(Tacho({**WITHOUT_POLLS, "limits": {"max_targets": 64}}))
        crowd = stack.enter_context(Process(["/usr/bin/python3", "-c", CROWD], user=65534))
        crowd.wait_for_line("up")
        wait_until(lambda: tacho.scrape().has("tacho_requests_total", target="other"), 5, "there are too many")
        with started_in(root.directory / "system.slice/late.service") as server:
            tacho.wait_for_target("late.service")
            exact(server.address, 200)
            assert tacho.settled("late.service").get("tacho_requests_total", target="late.service") == 200
