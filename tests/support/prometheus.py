"""A real Prometheus that scrapes, and a relay through which one can see and choose what it negotiates."""

import http.client
import http.server
import json
import pathlib
import tempfile
import threading
import time
import urllib.parse

import yaml

from support import net
from support.exposition import Samples
from support.process import Process
from support.waiting import wait_until


class Relay:
    """Forwards GET requests to HOST:PORT, with another Accept header if one is given.

    Prometheus 2.42 always prefers OpenMetrics, or protobuf; this is how it gets the other forms. `content_types` has what was answered.
    """

    def __init__(self, upstream: str, accept: str | None = None):
        self.content_types: list[str] = []
        relay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                if accept:
                    headers["Accept"] = accept
                try:
                    status, answered, body = net.exchange(upstream, self.path, headers=headers)
                except (OSError, http.client.HTTPException):
                    return self.send_error(502)
                relay.content_types.append(answered["Content-Type"])
                self.send_response(status)
                for name in ("Content-Type", "Content-Encoding"):
                    if name in answered:
                        self.send_header(name, answered[name])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Prometheus:
    """Scrapes `jobs` (name → HOST:PORT) every `interval`, as README asks: labels of tacho's go first.

    `labels` are those of the scraped, as service discovery gives them. With `native` it asks for protobuf first and keeps
    native histograms, with `exemplars` it keeps these.
    """

    def __init__(self, jobs: dict[str, str], interval: str = "1s", rule_files=(), prefix=(), labels=None, native=False, exemplars=False):
        self._temporary = tempfile.TemporaryDirectory(prefix="tacho-prometheus-")
        directory = pathlib.Path(self._temporary.name)
        configuration = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": [str(file) for file in rule_files],
            "scrape_configs": [
                {"job_name": name, "honor_labels": True, "static_configs": [{"targets": [address], "labels": labels or {}}]}
                for name, address in jobs.items()
            ],
        }
        (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        self.address = f"127.0.0.1:{net.free_port()}"
        features = ["native-histograms"] * native + ["exemplar-storage"] * exemplars
        self.process = Process([
            "prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address={self.address}", *(f"--enable-feature={feature}" for feature in features),
        ], prefix=prefix)  # fmt: skip
        wait_until(lambda: net.exchange(self.address, "/-/ready")[0] == 200, 30, "Prometheus is ready")

    def api(self, path: str, **parameters) -> dict:
        """The `data` of an API call."""
        status, _, body = net.exchange(self.address, f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        answer = json.loads(body)
        if status != 200 or answer["status"] != "success":
            raise RuntimeError(f"Prometheus: {path} {parameters}: {body[:500]!r}")
        return answer["data"]

    def query(self, expression: str, at: float | None = None) -> list[tuple[dict, float]]:
        """(labels, value) of every element of an instant query."""
        when = {} if at is None else {"time": at}
        data = self.api("query", query=expression, **when)
        return [(element["metric"], float(element["value"][1])) for element in data["result"]]

    def exemplars(self, selector: str, since: float) -> list[tuple[dict, list[dict]]]:
        """(labels of the series, its exemplars: labels, value, timestamp) of every series that has any."""
        found = self.api("query_exemplars", query=selector, start=since, end=time.time() + 1)
        return [
            (each["seriesLabels"], [one | {"value": float(one["value"])} for one in each["exemplars"]]) for each in found
        ]

    def own(self, name: str) -> float:
        """A counter of Prometheus' own."""
        return Samples.parse(net.exchange(self.address, "/metrics")[2].decode()).sum(name)

    def targets(self) -> list[dict]:
        return self.api("targets")["activeTargets"]

    def full_window(self, target: str, seconds: float, jobs: int = 1) -> float:
        """Waits until `seconds` that began after this call are full of each job's scrapes of the target: a window that is
        not makes rate() too low. Returns their end (Unix time).
        """
        began = time.time()

        def is_full() -> float:
            now = time.time()
            scrapes = self.query(f'count_over_time(tacho_requests_total{{target="{target}"}}[{seconds}s])', now)
            full = len(scrapes) == jobs and all(count >= seconds for _, count in scrapes)
            return now if full and now > began + seconds + 1 else 0

        return wait_until(is_full, 4 * seconds, "a window full of scrapes", interval=0.1)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        try:
            self.process.__exit__(*error)
        finally:
            self._temporary.cleanup()
