"""Asks tests/support/servers/grpc_echo.py for so many seconds, one call after the other, and tells as open_loop_client does."""

import json
import sys
import time

import grpc

port, seconds = sys.argv[1], float(sys.argv[2])
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    call = channel.unary_unary("/tacho.Echo/Unary")
    call(b"x" * 64)
    started, completed = time.monotonic(), 1
    while time.monotonic() - started < seconds:
        call(b"x" * 64)
        completed += 1
    print(json.dumps({"completed": completed, "elapsed": time.monotonic() - started}))
