"""A gRPC server in Python: a unary method, one that works first, and one that answers with a stream. Run as a program it serves."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support.servers.base import Server  # noqa: E402

UNARY = "/tacho.Echo/Unary"
WORK = "/tacho.Echo/Work"
STREAM = "/tacho.Echo/Stream"
WORKED = 0.02  # seconds
STREAMED = 5


class GrpcEcho(Server):
    name = "grpc"

    def start(self):
        return self._start(["/usr/bin/python3", "-B", "-u", __file__, self.port])


def _serve(port: int) -> None:
    import concurrent.futures
    import time

    import grpc

    def work(message, context):
        time.sleep(WORKED)
        return message

    unary = {UNARY: lambda message, context: message, WORK: work}

    def stream(message, context):
        for _ in range(STREAMED):
            yield message

    class Handler(grpc.GenericRpcHandler):
        def service(self, call):
            if call.method in unary:
                return grpc.unary_unary_rpc_method_handler(unary[call.method])
            return grpc.unary_stream_rpc_method_handler(stream) if call.method == STREAM else None

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Handler(),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
