"""The texts inside JSON texts, which are found without parsing where that is possible."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from mlcore.spans.stored_span import hexadecimal, text_of

_PIECES = (
    '"',
    "\\",
    "\\n",
    "\\u00e9",
    "\\ud800",
    "a",
    "ü",
    "\n",
    "\x1f",
    "\x7f",
    " ",
    "{",
    "1",
    "]",
)


def _parsed(value: str) -> Any:
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    if not isinstance(parsed, str):
        return value
    return parsed.encode("utf-8", "replace").decode()  # "?" for half of a surrogate pair


def test_texts_are_those_that_a_parser_finds() -> None:
    rng = random.Random(1)
    for _ in range(20_000):
        inner = "".join(rng.choices(_PIECES, k=rng.randrange(5)))
        for value in (inner, f'"{inner}"', f' "{inner}"\n', json.dumps(inner)):
            assert text_of(value) == _parsed(value), value


@pytest.mark.parametrize("value", [None, 1, 2.5, True, ["a"], {"a": '"b"'}])
def test_other_values_stay(value: Any) -> None:
    assert text_of(value) is value


def test_an_id_is_hexadecimal() -> None:
    assert hexadecimal("AAAAAAAAAAs=") == "000000000000000b"
    with pytest.raises(ValueError, match="ASCII"):
        hexadecimal("ä")
