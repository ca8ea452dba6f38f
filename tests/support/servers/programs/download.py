"""A WSGI application (PEP 3333) whose reply is as many KiB as the path says, in one piece; it reads nothing of a request's body."""


def application(environ, start_response):
    body = b"x" * (1024 * int(environ["PATH_INFO"][1:]))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
