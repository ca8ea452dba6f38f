"""tacho as one more container of a pod: no path of the host, no other's processes, two capabilities."""

import contextlib
import pathlib
import tempfile

import pytest

from support import image
from support.containers import Pod, Storage, why_not
from support.deployed import Nginx, SidecarTacho, assert_counts
from support.waiting import wait_until


@pytest.fixture(scope="module")
def storage():
    """A storage with the images of tacho and nginx."""
    if reason := why_not():
        pytest.skip(reason)
    with Storage() as made, tempfile.TemporaryDirectory() as tacho, tempfile.TemporaryDirectory() as nginx:
        image.build_from_tree(made, pathlib.Path(tacho))
        image.build_nginx(made, pathlib.Path(nginx), "nginx")
        yield made


@pytest.fixture
def pod():
    with Pod("pod") as made:
        yield made


@pytest.fixture
def nginx(storage, pod, tmp_path):
    """nginx(name) starts one in the pod, nginx(name, pod=other) in another one."""
    with contextlib.ExitStack() as stack:

        def start(name: str, pod: Pod = pod) -> Nginx:
            return stack.enter_context(Nginx(storage, name, tmp_path, options=pod.options))

        yield start


def test_it_counts_the_containers_of_its_pod_older_and_newer(storage, pod, nginx, agree):
    before = nginx("before")
    with SidecarTacho(storage, pod) as tacho:
        # It listened before, in a PID namespace that this tacho cannot look into.
        assert_counts(tacho, before, 503, agree, container_id=before.id)
        after = nginx("after")
        assert_counts(tacho, after, 307, agree, container_id=after.id)
        samples = tacho.scrape()
        assert samples.get("tacho_requests_total", container_id=before.id) == 503
        assert samples.get("tacho_requests_total", container_id=after.id) == 307
        assert {labels["target"] for labels, _ in samples.all("tacho_target_info")} == {"pod"}


def test_it_sees_nothing_of_the_host(storage, pod):
    with SidecarTacho(storage, pod) as tacho:
        mounts = pathlib.Path(f"/proc/{tacho.container.pid}/mountinfo").read_text()
        assert "/sys/kernel/tracing" not in mounts and " - cgroup2 " not in mounts
        assert pathlib.Path(f"/proc/{tacho.container.pid}/ns/pid").readlink() != pathlib.Path("/proc/self/ns/pid").readlink()
        attached = tacho.scrape().all("tacho_probe_attached")
        assert attached and all(value == 1 for _, value in attached), attached


def test_containers_of_other_pods_and_its_own_are_not_its_business(storage, pod, nginx, agree):
    with Pod("other") as other, contextlib.ExitStack() as stack:
        tacho = stack.enter_context(SidecarTacho(storage, pod))
        stranger = nginx("stranger", other)
        mine = nginx("mine")
        assert stranger.serve(101).requests == 101
        assert_counts(tacho, mine, 211, agree, container_id=mine.id)
        known = {labels["container_id"] for labels, _ in tacho.scrape().all("tacho_target_info")}
        assert known == {mine.id}
        stranger.stop()


def test_container_that_ends_leaves_when_it_has_been_read(storage, pod, nginx, agree):
    with SidecarTacho(storage, pod) as tacho:
        server = nginx("short")
        assert_counts(tacho, server, 101, agree, container_id=server.id)
        server.stop()
        wait_until(lambda: not tacho.scrape().has("tacho_requests_total"), 30, "the container is forgotten")
