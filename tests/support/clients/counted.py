"""What a load client reports."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Counted:
    """`requests` answered to the client in `seconds`.

    The server may have answered between `least_extra` and `most_extra` more: requests in flight when the client
    stopped, and what `extra` names (log-ins, questions about the server) that the client does not count.
    """

    client: str
    requests: int
    seconds: float
    least_extra: int = 0
    most_extra: int = 0
    extra: str = ""

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    def admits(self, answered: int) -> bool:
        """Is `answered` requests by the server what this client saw?"""
        return self.requests + self.least_extra <= answered <= self.requests + self.most_extra

    def expectation(self) -> str:
        more = f" + {self.least_extra}…{self.most_extra} ({self.extra})" if self.most_extra else ""
        return f"{self.requests}{more}"


def find(pattern: str, text: str, client: str) -> re.Match:
    """A number in a client's report; a report without it is an error, not a zero."""
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ValueError(f"{client} reported nothing like {pattern!r}:\n{text}")
    return match
