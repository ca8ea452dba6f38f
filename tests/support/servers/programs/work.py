"""A WSGI application (PEP 3333): the path's number is how many thousand additions a request costs."""


def application(environ, start_response):
    body = str(sum(range(1000 * int(environ["PATH_INFO"][1:])))).encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
