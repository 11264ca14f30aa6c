"""Counts what is asked of an S3 server behind :mod:`tests.doubles.s3_front`, by kind of request and
by what it is about."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

from tests.doubles.signatures import Sent

_PLACES = (
    (re.compile(r"landing/.*"), "landing objects"),
    (re.compile(r"system/mlflow/(\w+)/_delta_log/\d+\.json"), "log of {}"),
    (re.compile(r"system/mlflow/(\w+)/_delta_log/.*check.*"), "checkpoint of {}"),
    (re.compile(r"system/mlflow/(\w+)/_delta_log/.*"), "log of {}"),
    (re.compile(r"system/mlflow/(\w+)/.*"), "files of {}"),
)


class Asked(NamedTuple):
    """Kind of a request (PUT, GET, HEAD, LIST, DELETE) and what it is about."""

    kind: str
    place: str


class Requests:
    """The requests of all processes that ask through a front."""

    def __init__(self) -> None:
        self.counts: Counter[Asked] = Counter()

    def check(self, sent: Sent) -> None:
        """Counts a request."""
        query = parse_qs(sent.query)
        is_list = "list-type" in query
        key = query.get("prefix", [""])[0] if is_list else unquote(sent.path).split("/", 2)[-1]
        self.counts[Asked("LIST" if is_list else sent.method, _place(key))] += 1

    def take(self) -> Counter[Asked]:
        """Returns the counts since the last call."""
        counts, self.counts = self.counts, Counter()
        return counts


def writes(counts: Counter[Asked]) -> int:
    """Requests with the price of a PUT."""
    return sum(count for asked, count in counts.items() if asked.kind in {"PUT", "POST", "LIST"})


def reads(counts: Counter[Asked]) -> int:
    """Requests with the price of a GET. Deletions are free."""
    return sum(count for asked, count in counts.items() if asked.kind in {"GET", "HEAD"})


def _place(key: str) -> str:
    for pattern, name in _PLACES:
        if match := pattern.fullmatch(key):
            return name.format(*match.groups())
    return "other files"
