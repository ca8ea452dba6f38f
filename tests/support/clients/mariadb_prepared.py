"""MariaDB's C client library with statements that the server prepares, as Go's and Java's drivers use them."""

import ctypes
import time


class PreparedStatements:
    """One connection of root's. A statement is prepared (a turn), executed (a turn) and closed, to which no reply comes."""

    log_ins = 1

    def __init__(self, port: int):
        self._library = library = ctypes.CDLL("libmariadb.so.3")
        for function, result in (("mysql_init", ctypes.c_void_p), ("mysql_real_connect", ctypes.c_void_p),
                                 ("mysql_stmt_init", ctypes.c_void_p), ("mysql_error", ctypes.c_char_p)):  # fmt: skip
            getattr(library, function).restype = result
        self._connection = ctypes.c_void_p(library.mysql_init(None))
        if not library.mysql_real_connect(
            self._connection, b"127.0.0.1", b"root", b"", b"mysql", ctypes.c_uint(port), None, ctypes.c_ulong(0)
        ):
            raise ConnectionError(library.mysql_error(self._connection).decode())

    def once(self, text: str) -> list[float]:
        """Prepares, executes and closes. Seconds of the two calls that are answered."""
        statement, words = ctypes.c_void_p(self._library.mysql_stmt_init(self._connection)), text.encode()
        times = [
            self._timed("mysql_stmt_prepare", statement, words, ctypes.c_ulong(len(words))),
            self._timed("mysql_stmt_execute", statement),
        ]
        self._timed("mysql_stmt_store_result", statement)
        self._timed("mysql_stmt_close", statement)
        return times

    def query(self, text: str) -> None:
        """A query in the clear; its result is thrown away."""
        words = text.encode()
        self._timed("mysql_real_query", self._connection, words, ctypes.c_ulong(len(words)))
        self._library.mysql_store_result.restype = ctypes.c_void_p
        self._library.mysql_free_result(ctypes.c_void_p(self._library.mysql_store_result(self._connection)))

    def _timed(self, function: str, *arguments) -> float:
        began = time.monotonic()
        if getattr(self._library, function)(*arguments):
            raise RuntimeError(f"{function}: {self._library.mysql_error(self._connection).decode()}")
        return time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._library.mysql_close(self._connection)
