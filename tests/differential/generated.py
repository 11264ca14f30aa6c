"""Random request bodies and query strings for a message, most of them a little wrong."""

from __future__ import annotations

import json
from typing import Any, get_args
from urllib.parse import urlencode

from hypothesis import strategies as st

from mlcore.wire import Int32, Message
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


def well_typed(field: Any) -> st.SearchStrategy[Any]:
    if field.message is not None:
        return bodies(field.message)
    if is_enum(field):
        return enums
    if field.hint is str:
        return st.sampled_from(["a", "0", "é b/c", ""])
    if field.hint is bool:
        return st.booleans()
    if field.hint in (int, Int32):
        return st.one_of(st.integers(0, 9), st.sampled_from(["5", "6.0", 7.0, "1e2"]))
    return st.one_of(
        st.floats(-5, 5), st.integers(-5, 5), st.sampled_from(["NaN", "Infinity", "1.5", True])
    )


@st.composite
def bodies(draw: Any, cls: type[Message]) -> dict[str, Any]:
    fields = draw(st.permutations(fields_of(cls)))
    strangeness = draw(st.sampled_from([0, 0, 1, 3]))
    body: dict[str, Any] = {}
    for field in fields:
        if draw(st.integers(0, 9)) < 2:
            continue
        name = field.json_name if draw(st.integers(0, 9)) < strangeness else field.name
        if draw(st.integers(0, 9)) < strangeness:
            body[name] = draw(anything)
        elif field.repeated:
            body[name] = draw(st.lists(well_typed(field), max_size=3))
        else:
            body[name] = draw(well_typed(field))
    if strangeness:
        for key, value in draw(st.dictionaries(strange_keys, anything, max_size=2)).items():
            body[key] = value
        if draw(st.integers(0, 9)) == 0 and fields:
            body[fields[0].json_name] = draw(anything)
    return body


@st.composite
def raw_bodies(draw: Any, cls: type[Message]) -> Any:
    form = draw(st.sampled_from(["object"] * 12 + ["twice", "broken", "other", "thrice"]))
    if form == "broken":
        return draw(st.sampled_from([b"", b"{bad", b"null", b'""', b'"x"', b"[[]]", b"{} {}"]))
    value = draw(anything) if form == "other" else draw(bodies(cls))
    text = json.dumps(value)
    if form in ("twice", "thrice"):
        text = json.dumps(text)
    return (json.dumps(text) if form == "thrice" else text).encode()


@st.composite
def queries(draw: Any, cls: type[Message]) -> str:
    pairs: list[tuple[str, str]] = []
    for field in fields_of(cls):
        name = field.json_name if draw(st.integers(0, 9)) == 0 else field.name
        for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
            value = draw(st.one_of(well_typed(field), scalars)) if field.message is None else "x"
            pairs.append((name, _encodable(str(value))))
    if draw(st.integers(0, 9)) == 0:
        pairs.append(("extra", "1"))
    return urlencode(pairs)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
