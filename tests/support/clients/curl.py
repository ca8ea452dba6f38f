"""curl, one request after the other on one connection."""

from support.process import run


def curl_times(url: str | list[str], requests: int, http: str, a_minute: int | None = None, more=()) -> list[float]:
    """Seconds from each request to the first byte of its reply, with what curl does before it sends it: the moment of that it tells
    only some time after. `http` is the option that names the version; `more` are others. Several URLs are asked for by turns."""
    urls = [url] if isinstance(url, str) else url
    rate = ["--rate", f"{a_minute}/m"] if a_minute else []
    report = run(
        ["curl", "--silent", "--show-error", "--insecure", http, *rate, *more, "--write-out",
         r"%{http_code} %{time_starttransfer} %{time_connect} %{time_appconnect}\n",
         *(word for number in range(requests) for word in ("--output", "/dev/null", urls[number % len(urls)]))],
        timeout=120,
    )  # fmt: skip
    lines = [line.split() for line in report.splitlines() if line.strip()]
    if [line[0] for line in lines] != ["200"] * requests:
        raise ValueError(f"curl was refused:\n{report}")
    return [float(first) - max(float(made) for made in connected) for _, first, *connected in lines]
