"""tacho as a container, and nginx as a container that it observes."""

import pathlib
import re

from support import image, net
from support.cgroup import cgroup2_mount
from support.clients import Counted, ab
from support.containers import Container, Pod, Storage
from support.paths import REPOSITORY
from support.tacho import Tacho
from support.waiting import wait_until

NGINX = """
user root;
daemon off;
error_log stderr warn;
pid /tmp/nginx.pid;
events {{ }}
http {{
    access_log off;
    client_body_temp_path /tmp/body;
    proxy_temp_path /tmp/proxy;
    fastcgi_temp_path /tmp/fastcgi;
    uwsgi_temp_path /tmp/uwsgi;
    scgi_temp_path /tmp/scgi;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok\\n"; }} }}
}}
"""


class Nginx(Container):
    """nginx in a container, on a free port of this machine."""

    def __init__(self, storage: Storage, name: str, directory: pathlib.Path, options=()):
        self.port = net.free_port()
        configuration = directory / f"{name}.conf"
        configuration.write_text(NGINX.format(port=self.port))
        super().__init__(storage, "nginx", name,
                         options=["--volume", f"{configuration}:/nginx.conf:ro", *options])  # fmt: skip
        wait_until(lambda: net.listens(self.port), 30, f"{name} listens")

    def serve(self, requests: int) -> Counted:
        """Has it answer so many; what the client counted."""
        return ab(f"http://127.0.0.1:{self.port}/", requests, connections=3)


class DeployedTacho(Tacho):
    """tacho in a container with a read-only root, two capabilities and a seccomp profile; `options` are the rest."""

    def __init__(self, storage: Storage, arguments, options, seccomp: pathlib.Path = image.SECCOMP):
        self.container = Container(
            storage, image.TAG, "tacho", "--web.listen-address=127.0.0.1:0", *arguments,
            options=[
                *options,
                "--read-only", "--cap-drop", "ALL", "--cap-add", "BPF", "--cap-add", "PERFMON",
                "--security-opt", "no-new-privileges", "--security-opt", f"seccomp={seccomp}",
            ],
        )  # fmt: skip
        line = self.container.wait_for_log("listening on 127.0.0.1:")
        self.address = re.search(r"127\.0\.0\.1:\d+", line)[0]

    def target_of(self, container: Container) -> str:
        """The `target` of a container, once it is observed."""

        def look() -> str | None:
            found = self.scrape().all("tacho_target_info", container_id=container.id)
            return found[0][0]["target"] if found else None

        return wait_until(look, 5, f"target of {container.name}")

    def __exit__(self, *error):
        self.container.__exit__(*error)


class ContainerTacho(DeployedTacho):
    """As README says: it sees the machine's cgroups and processes, and has no configuration.

    With a `config` file it has that one, and sees only its own processes, as in the overlay restricted-node.
    """

    def __init__(self, storage: Storage, config: pathlib.Path | None = None, seccomp: pathlib.Path = image.SECCOMP):
        arguments, options = [], ["--pid", "host"]
        if config is not None:
            arguments, options = ["--config.file=/tacho.yaml"], ["--volume", f"{config}:/tacho.yaml:ro"]
        super().__init__(storage, arguments, [
            *options,
            "--volume", f"{cgroup2_mount()}:/sys/fs/cgroup:ro",
            "--volume", "/sys/kernel/tracing:/sys/kernel/tracing:ro",
            "--volume", f"{storage.root}/overlay-containers:/var/lib/containers/storage/overlay-containers:ro",
        ], seccomp)  # fmt: skip


class SidecarTacho(DeployedTacho):
    """A container of a pod, beside others, that has nothing of the host, with the configuration of the component."""

    CONFIG = REPOSITORY / "deploy/kubernetes/components/sidecar/tacho.yaml"

    def __init__(self, storage: Storage, pod: Pod):
        options = [*pod.options, "--volume", f"{self.CONFIG}:/tacho.yaml:ro"]
        super().__init__(storage, ["--config.file=/tacho.yaml"], options)


def assert_counts(tacho: DeployedTacho, server: Nginx, prime: int, agree, **labels: str) -> None:
    """Has the server answer so many requests, of which tacho counts every one; the labels tell its target apart."""
    with tacho.watch(tacho.target_of(server), **labels) as change:
        counted = server.serve(prime)
    agree(f"nginx in a container, {server.name}", counted, change, alone=False)
    assert change.requests == prime
