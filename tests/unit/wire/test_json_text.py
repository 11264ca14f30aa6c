"""JSON texts and values that cannot be stored, or not be gone through, are refused."""

from __future__ import annotations

import gc
import json
import sys
import threading
from types import FrameType
from typing import Any

import pytest

from mlcore.wire import json_text
from mlcore.wire.json_text import (
    MAX_DEPTH,
    NestedTooDeeply,
    check_storable,
    load_json,
    parse_json_text,
)

REASON = "Expecting|nested|surrogates"


def nested(depth: int) -> Any:
    value: Any = "x"
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 3000,
        '"\\ud800"',
        '{"a": ["\\udc00"]}',
        '{"\\ud800": 1}',
        json.dumps(nested(MAX_DEPTH + 1)),
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=REASON):
        parse_json_text(text)


@pytest.mark.parametrize("value", ["\ud800", {"\udc00": ["\ud800"]}])
def test_halves_of_pairs_are_accepted_where_ascii_is_stored(value: Any) -> None:
    assert parse_json_text(json.dumps(value), lone_surrogates=True) == value
    for text in ("{", json.dumps(nested(MAX_DEPTH + 1)), "[" * 3000):
        with pytest.raises(ValueError, match=REASON):
            parse_json_text(text, lone_surrogates=True)


@pytest.mark.parametrize(
    "value",
    [None, 1, "é☃\U0001f600", "\x00", ["{" * 300], [[]] * 300, nested(MAX_DEPTH), {"a\n": "\\ud8"}],
)
def test_accepted(value: Any) -> None:
    assert parse_json_text(json.dumps(value)) == value
    assert parse_json_text(json.dumps(value, ensure_ascii=False)) == value
    check_storable(value)


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, nested(MAX_DEPTH + 1), nested(5000)])
def test_values_are_checked(value: Any) -> None:
    with pytest.raises(ValueError, match=REASON):
        check_storable(value)


class _Cycle:
    """Garbage with a finalizer that calls functions."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        json.dumps(json.loads("[[]]"))


def test_no_finalizer_runs_without_recursion_left(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)
    thresholds = gc.get_threshold()
    try:
        for objects in range(300, 1000, 2):  # until a collection, so that one is near the limit
            gc.set_threshold(objects, 1000, 1000)  # of young objects alone
            gc.collect(0)
            _Cycle()
            with pytest.raises(NestedTooDeeply):
                load_json("[" * 5000)
            assert gc.isenabled()
    finally:
        gc.set_threshold(*thresholds)
    assert not failed


def test_threads_leave_the_garbage_collector_enabled() -> None:
    """Whichever of two parsers begins or ends first."""
    inside, other_ended = threading.Event(), threading.Event()

    def slow(text: str) -> float:
        inside.set()
        assert other_ended.wait(10)
        return float(text)

    first = threading.Thread(target=load_json, args=("1.5",), kwargs={"parse_float": slow})
    first.start()
    assert inside.wait(10)
    load_json("[]")
    assert not gc.isenabled()
    other_ended.set()
    first.join()
    assert gc.isenabled()


def test_what_runs_between_two_steps_of_a_pause_may_parse() -> None:
    """A finalizer or a handler of a signal runs between any two steps of Python, in the same
    thread."""

    def parse(frame: FrameType, _event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename != json_text.__file__:
            return None
        assert load_json("[1]") == [1]
        return parse

    def work() -> None:
        sys.settrace(parse)
        try:
            load_json("[2]")
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert (thread.is_alive(), gc.isenabled()) == (False, True)
