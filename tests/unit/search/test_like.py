from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from mlcore.search.like import ilike, like

_text = st.text(alphabet="aAbé\n%_", max_size=8)


def _reference(pattern: str, text: str) -> bool:
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(char) or re.escape(char) for char in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


@given(_text, _text)
def test_like_is_the_regular_expression(pattern: str, text: str) -> None:
    assert like(pattern)(text) == _reference(pattern, text)


@given(_text, _text)
def test_ilike_folds_ascii_only(pattern: str, text: str) -> None:
    assert ilike(pattern)(text) == _reference(pattern.replace("A", "a"), text.replace("A", "a"))


def test_ilike_beyond_ascii() -> None:
    assert ilike("x%é")("X é")
    assert not ilike("é")("É")


def test_no_pattern_takes_forever() -> None:
    started = time.process_time()
    assert not like("%a_" * 50 + "b")("a" * 5000)
    assert time.process_time() - started < 1
