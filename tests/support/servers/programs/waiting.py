"""A WSGI application (PEP 3333): the path's number is how many milliseconds a request waits, as if for a database."""

import time


def application(environ, start_response):
    time.sleep(int(environ["PATH_INFO"][1:]) / 1000)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\n"]
