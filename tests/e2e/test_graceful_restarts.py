"""Servers that replace their processes under load: no request is lost to the count, and the target stays."""

import contextlib
import dataclasses
import signal
import threading

from support.clients import ab
from support.servers import Gunicorn, HAProxy, Nginx
from support.tacho import Tacho, target
from support.waiting import wait_until


@contextlib.contextmanager
def repeatedly(act):
    """Calls act() again and again in the background while the block runs. Yields the list of what it returned."""
    done, results, errors = threading.Event(), [], []

    def go():
        try:
            while not done.is_set():
                results.append(act())
        except Exception as error:  # noqa: BLE001: it is raised where the test sees it
            errors.append(error)

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield results
    finally:
        done.set()
        thread.join(timeout=30)
    if errors:
        raise errors[0]


def together(parts):
    """What several runs of one client counted."""
    return dataclasses.replace(
        parts[0], requests=sum(part.requests for part in parts), seconds=sum(part.seconds for part in parts)
    )


def test_nginx_reloads_under_load(cgroups, agree):
    """Old workers serve to the end what they have accepted; new ones take over the listening socket."""
    group = cgroups("reload")
    with Nginx(group.prefix, workers=2) as server, Tacho({"targets": [target("reload", group.path)]}) as tacho:
        with tacho.watch("reload") as change, repeatedly(lambda: ab(server.url("/static"), 503)) as parts:
            for _ in range(3):
                old = set(group.pids()) - {server.process.pid}
                server.process.signal(signal.SIGHUP)
                wait_until(lambda: not old & set(group.pids()), 20, "old workers have ended")
        agree("nginx, reloaded thrice", together(parts), change)


def test_haproxy_reloads_under_load(cgroups, agree):
    """The new process gets the listening sockets over a unix socket (SCM_RIGHTS)."""
    group = cgroups("reload")
    with (
        Nginx() as back,
        HAProxy(back.address, group.prefix) as server,
        Tacho({"targets": [target("reload", group.path, ports=[server.port])]}) as tacho,
    ):
        with tacho.watch("reload") as change, repeatedly(lambda: ab(server.url("/return"), 503)) as parts:
            for _ in range(3):
                server.reload()
        agree("HAProxy, reloaded thrice", together(parts), change)


def test_gunicorn_reloads_under_load(cgroups, agree):
    """Its master keeps the listening socket, and makes new workers before it ends the old ones."""
    group = cgroups("reload")
    with Gunicorn(group.prefix) as server, Tacho({"targets": [target("reload", group.path)]}) as tacho:
        with tacho.watch("reload") as change, repeatedly(lambda: ab(server.url, 101)) as parts:
            old = set(group.pids()) - {server.process.pid}
            server.process.signal(signal.SIGHUP)
            wait_until(lambda: not old & set(group.pids()), 30, "old workers have ended")
        agree("gunicorn, reloaded", together(parts), change)


def test_gunicorn_is_replaced_under_load(cgroups, agree):
    """SIGUSR2: another program is executed with the listening socket; then the old one is told to end."""
    group = cgroups("replaced")
    with Gunicorn(group.prefix) as server, Tacho({"targets": [target("replaced", group.path)]}) as tacho:
        with tacho.watch("replaced") as change, repeatedly(lambda: ab(server.url, 101)) as parts:
            old = set(group.pids())
            seen = server.process.line_count
            server.process.signal(signal.SIGUSR2)
            server.process.wait_for_line("Booting worker", timeout=20, start=seen)
            server.process.signal(signal.SIGTERM)
            wait_until(lambda: not old & set(group.pids()), 30, "the old program has ended")
        agree("gunicorn, replaced", together(parts), change)
