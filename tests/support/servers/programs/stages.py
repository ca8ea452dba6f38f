"""A WSGI application (PEP 3333) whose requests go through the stages that the letters of their path name.

c: half a millisecond on a CPU; l: behind a lock; d: a record that has to be on the disk; n: a request to the server at $DEPENDENCY.
/hold has a thread keep the lock for 40 of each 50 ms until /free.
"""

import http.client
import os
import tempfile
import threading
import time

_lock = threading.Lock()
_free = threading.Event()
_journal = tempfile.NamedTemporaryFile(dir=os.environ.get("JOURNAL"), prefix="stages-")
_own = threading.local()


def _cpu():
    end = time.thread_time() + 0.0005
    while time.thread_time() < end:
        pass


def _locked():
    with _lock:
        pass


def _disk():
    os.pwrite(_journal.fileno(), b"record" * 100, 0)
    os.fsync(_journal.fileno())


def _network():
    if not hasattr(_own, "connection"):
        _own.connection = http.client.HTTPConnection(os.environ["DEPENDENCY"])
    _own.connection.request("GET", "/")
    _own.connection.getresponse().read()


_STAGES = {"c": _cpu, "l": _locked, "d": _disk, "n": _network}


def _hold():
    while not _free.wait(0.01):
        with _lock:
            time.sleep(0.04)


def application(environ, start_response):
    path = environ["PATH_INFO"][1:]
    if path == "hold":
        _free.clear()
        threading.Thread(target=_hold).start()
    elif path == "free":
        _free.set()
    else:
        for letter in path:
            _STAGES[letter]()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\n"]
