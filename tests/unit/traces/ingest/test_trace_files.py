"""Files ``traces.json`` of any client, and of somebody who writes one by hand."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest

from traces import span_responses
from traces.ingest import trace_files

Json = dict[str, Any]
VERSION_3: Final[Json] = {
    "trace_id": "AAAAAAAAAAAAAAAAAAAAAA==",
    "span_id": "AAAAAAAAAAE=",
    "parent_span_id": "",
    "name": "n",
    "start_time_unix_nano": 1,
    "end_time_unix_nano": 2,
    "status": {"code": "OK", "message": "fine"},
    "attributes": {"a": "1"},
    "events": [{"name": "e", "time_unix_nano": 3, "attributes": {"x": "y"}}],
    "links": [{"trace_id": "0a", "span_id": "0b", "attributes": {}}],
}
VERSION_2: Final[Json] = {
    "context": {"trace_id": "0xab", "span_id": "0xcd"},
    "parent_id": None,
    "name": "n",
    "start_time": 1,
    "end_time": 2,
    "status_code": "OK",
    "status_message": "",
    "attributes": {"mlflow.traceRequestId": '"tr-1"'},
    "events": [{"name": "e", "timestamp": 1, "attributes": {}}],
}
ODD: Final[tuple[Any, ...]] = (
    *(None, 1, -1, 10**30, -(10**30), 1.5, True, float("inf")),
    *("x", "", "-1", "9" * 400, "0x" + "f" * 100, "\ud800", [], {}, [1], [[]], {"a": 1}),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values within a value."""
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, part in parts:
        yield (*path, key)
        yield from places(part, (*path, key))


def changed(span: Json, path: tuple[Any, ...]) -> Iterator[Json]:
    """The span with every odd value at a place, and without this place."""
    for odd in (*ODD, "nothing"):
        copied = copy.deepcopy(span)
        owner: Any = copied
        for key in path[:-1]:
            owner = owner[key]
        if odd == "nothing":
            del owner[path[-1]]
        else:
            owner[path[-1]] = odd
        yield copied


@pytest.mark.parametrize("span", [VERSION_3, VERSION_2], ids=["3", "2"])
def test_whatever_a_file_says_it_is_shown_or_ignored(span: Json) -> None:
    spans = trace_files.parse(json.dumps({"spans": [span, span]}).encode())
    assert spans is not None
    whole = [span_responses.span(each) for each in spans]
    assert [each["name"] for each in whole] == ["n", "n"]
    ignored = 0
    for path in places(span):
        for odd in changed(span, path):
            parsed = trace_files.parse(json.dumps({"spans": [span, odd]}).encode())
            if parsed is None:
                ignored += 1
            else:
                json.dumps([span_responses.span(each) for each in parsed])
    assert ignored > 100
