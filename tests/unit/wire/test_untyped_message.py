"""Parameters of accounts: anything but what no store can keep."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from mlcore.errors import InvalidParameterValue
from mlcore.wire.untyped_message import Parameters


class Some(Parameters):
    first: Any
    second: Any


TEXTS = st.text() | st.sampled_from(["\ud800", "x\udc00", "é"])
VALUES = st.recursive(
    st.none() | st.floats() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["first", "second", "third"]), VALUES) | VALUES)
@example({"first": "\ud800"})
@example({"second": {"a": ["\udc00"]}})
def test_what_is_kept_can_be_written(sent: Any) -> None:
    with contextlib.suppress(InvalidParameterValue):
        made = Some.of(sent)
        for name in ("first", "second"):
            json.dumps(getattr(made, name), ensure_ascii=False).encode()
            assert made.has(name) == (isinstance(sent, dict) and name in sent)
