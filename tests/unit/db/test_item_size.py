"""No item that DynamoDB refuses passes the check of its size."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.store.attribute_values import checked_item
from mlcore.db import item_size
from mlcore.db.failures import ItemTooLarge

_TEXTS = st.text(max_size=5)
_NUMBERS = st.one_of(st.integers(-200, 200), st.integers(-(10**38) + 1, 10**38 - 1)).map(str)
_SCALARS = st.one_of(
    st.fixed_dictionaries({"S": _TEXTS}),
    st.fixed_dictionaries({"N": _NUMBERS}),
    st.fixed_dictionaries({"B": st.binary(max_size=5)}),
    st.just({"BOOL": True}),
    st.fixed_dictionaries({"SS": st.lists(_TEXTS, min_size=1, max_size=3, unique=True)}),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"M": st.dictionaries(_TEXTS, inner, max_size=3)}),
    ),
    max_leaves=8,
)


@given(st.dictionaries(_TEXTS, _VALUES, min_size=1, max_size=5))
def test_the_estimate_is_never_too_low(item: dict[str, Any]) -> None:
    _, size = checked_item(item)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_size, "_MAX_BYTES", size - 1)
        with pytest.raises(ItemTooLarge):
            item_size.check(item)
