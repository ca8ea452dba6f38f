"""A WSGI application (PEP 3333) that answers every request the same."""


def application(environ, start_response):
    body = b"ok\n"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
