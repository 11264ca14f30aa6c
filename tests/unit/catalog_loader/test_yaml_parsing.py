"""YAML from outside: what is read is what PyYAML reads, and what would be too much is refused."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from catalog_loader import yaml_parsing
from catalog_loader.yaml_parsing import NotYaml, parse

NUMBER = re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+")
"""For YAML 1.2 and Go ``0E0`` is a number, for PyYAML it is a text that needs no quotes."""
TEXTS = st.text(max_size=20).filter(lambda text: not NUMBER.fullmatch(text))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXTS.filter(lambda key: key != "<<"), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_json_is_read_as_it_is(value: object) -> None:
    text = json.dumps(value)
    if "\\u0000" not in text and "\\ud" not in text:
        assert parse(text.encode()) == value


@given(VALUES)
def test_what_pyyaml_writes_is_read(value: object) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert json.dumps(parse(text.encode())) == json.dumps(yaml.safe_load(text))


def test_aliases_and_merges() -> None:
    text = b"a: &a {p: 1, q: 2}\nb: *a\nc: {<<: *a, q: 3}\nd: {q: 4, <<: [*a, {r: 5}]}"
    assert parse(text) == {
        "a": {"p": 1, "q": 2},
        "b": {"p": 1, "q": 2},
        "c": {"p": 1, "q": 3},
        "d": {"p": 1, "q": 4, "r": 5},
    }


def _bomb(inner: str) -> bytes:
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{at}: &a{at} " + inner.format(*[f"*a{at - 1}"] * 9) for at in range(1, 12)]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "data",
    [
        _bomb("[{}, {}, {}, {}, {}, {}, {}, {}, {}]"),
        _bomb("{{<<: [{}, {}, {}, {}, {}, {}, {}, {}, {}]}}"),
        b"[" * 100_000,
        b"{a: " * 100_000,
        b"a: &a [*a]",
        b"a: *nothing",
        b"a: !!python/name:os.system x",
        b"a: b: c",
        b"[a]: b",
        b"a: 1\n---\nb: 2",
        b"\xff\xfe",
        b"a: \0",
        b"x" * (yaml_parsing.MAX_BYTES + 1),
    ],
    ids=lambda data: data[:20],
)
def test_what_is_too_much_or_none_at_all_is_refused(data: bytes) -> None:
    with pytest.raises(NotYaml):
        parse(data)


def test_dates_and_unusual_numbers_stay_texts() -> None:
    assert parse(b"[2024-01-01, 1_000, 0x1F, 012, 1:30, .inf, yes, 1e400]") == [
        *("2024-01-01", "1_000", "0x1F", "012", "1:30", ".inf", "yes", "1e400")
    ]
