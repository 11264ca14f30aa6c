"""Random request bodies and query strings for a message, most of them a little wrong.

Hypothesis examines each strategy when it is first drawn from, which takes longer than to draw. So
those that many examples need are made once.
"""

from __future__ import annotations

import functools
import json
from typing import Any, get_args
from urllib.parse import urlencode

from hypothesis import strategies as st

from mlcore.wire import ArgumentInt, Int32
from mlcore.wire.message import fields_of
from mlcore.wire.scalars import Enum


def is_enum(field: Any) -> bool:
    return any(isinstance(extra, Enum) for extra in get_args(field.hint))


numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(
        [
            2**31 - 1,
            2**31,
            -(2**31),
            2**63 - 1,
            2**63,
            -(2**63),
            -(2**63) - 1,
            10**400,
            50000,
            50001,
        ]
    ),
    st.floats(),
    st.sampled_from([1.0, 1.5, 1e30, 1e308, -0.0]),
)
numeric_texts = st.sampled_from([
    "1", "-7", "1.0", "1.5", "1e3", "1e400",
    " 1", "1 ", "\t2\n", "1_000", "٣", "0x10", "", "NaN", "nan",
    "NAN",
    "Infinity", "-Infinity", "inf", "+3", "9223372036854775808",
    "true", "None", "9" * 5000,
])  # fmt: skip
texts = st.one_of(
    # As a key, text in brackets is an extension to protobuf's parser, and unknown to ours.
    st.text(st.characters(exclude_characters="["), max_size=6),
    st.sampled_from(["x", "é", "\ud800", "\udc00x", "😀", "a" * 300, "run_id", "key"]),
)
enums = st.sampled_from(
    [
        "RUNNING",
        "FINISHED",
        "ALL",
        "ACTIVE_ONLY",
        "bogus",
        "",
        "1",
        "99",
        1,
        2,
        99,
        1.5,
        True,
        "running",
    ]
)
scalars = st.one_of(st.none(), st.booleans(), numbers, numeric_texts, texts, enums)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(texts, st.sampled_from(["key", "value", "name", "step"])), inner, max_size=3
        ),
    ),
    max_leaves=5,
)
strange_keys = st.sampled_from(["", "x", "run", "runID", "Run_Id", "checks", "metrics[0]", "x]"])


tenths = st.integers(0, 9)


@functools.cache
def well_typed(field: Any) -> st.SearchStrategy[Any]:
    if field.message is not None:
        return bodies(field.message)
    if is_enum(field):
        return enums
    if field.hint is str:
        return st.sampled_from(["a", "0", "é b/c", ""])
    if field.hint is bool:
        return st.booleans()
    if field.hint in (int, Int32, ArgumentInt):
        return st.one_of(st.integers(0, 9), st.sampled_from(["5", "6.0", 7.0, "1e2"]))
    return st.one_of(
        st.floats(-5, 5), st.integers(-5, 5), st.sampled_from(["NaN", "Infinity", "1.5", True])
    )


@functools.cache
def _up_to_three(field: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(well_typed(field), max_size=3)


@functools.cache
def _any_order(cls: Any) -> st.SearchStrategy[list[Any]]:
    return st.permutations(fields_of(cls))


_strangeness = st.sampled_from([0, 0, 1, 3])
_strange_fields = st.dictionaries(strange_keys, anything, max_size=2)


@functools.cache
def bodies(cls: Any) -> st.SearchStrategy[dict[str, Any]]:
    return _bodies(cls)


@st.composite
def _bodies(draw: Any, cls: Any) -> dict[str, Any]:
    fields = draw(_any_order(cls))
    strangeness = draw(_strangeness)
    body: dict[str, Any] = {}
    for field in fields:
        if draw(tenths) < 2:
            continue
        name = field.json_name if draw(tenths) < strangeness else field.name
        if draw(tenths) < strangeness:
            body[name] = draw(anything)
        elif field.repeated:
            body[name] = draw(_up_to_three(field))
        else:
            body[name] = draw(well_typed(field))
    if strangeness:
        for key, value in draw(_strange_fields).items():
            body[key] = value
        if draw(tenths) == 0 and fields:
            body[fields[0].json_name] = draw(anything)
    return body


_forms = st.sampled_from(["object"] * 12 + ["twice", "broken", "other", "thrice"])
_broken = st.sampled_from([b"", b"{bad", b"null", b'""', b'"x"', b"[[]]", b"{} {}"])


@st.composite
def raw_bodies(draw: Any, cls: Any) -> Any:
    form = draw(_forms)
    if form == "broken":
        return draw(_broken)
    value = draw(anything) if form == "other" else draw(bodies(cls))
    text = json.dumps(value)
    if form in ("twice", "thrice"):
        text = json.dumps(text)
    return (json.dumps(text) if form == "thrice" else text).encode()


_repetitions = st.sampled_from([0, 1, 1, 1, 2, 3])


@functools.cache
def _in_query(field: Any) -> st.SearchStrategy[Any]:
    return st.one_of(well_typed(field), scalars)


@st.composite
def queries(draw: Any, cls: Any) -> str:
    pairs: list[tuple[str, str]] = []
    for field in fields_of(cls):
        name = field.json_name if draw(tenths) == 0 else field.name
        for _ in range(draw(_repetitions)):
            value = draw(_in_query(field)) if field.message is None else "x"
            pairs.append((name, _encodable(str(value))))
    if draw(tenths) == 0:
        pairs.append(("extra", "1"))
    return urlencode(pairs)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
