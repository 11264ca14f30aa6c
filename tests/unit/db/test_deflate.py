from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.deflate import compressed


@given(st.binary(max_size=3000), st.integers(0, 60))
def test_any_reader_of_zlib_gets_the_data_back(data: bytes, times: int) -> None:
    whole = data * times
    assert zlib.decompress(compressed(whole)) == whole


@pytest.mark.parametrize(
    "length", [0, 1, 100, 250, 256, 300, 511, 513, 2000, 8192, 40_000, 200_000]
)
def test_short_data_take_no_more_bytes_than_with_large_tables(length: int) -> None:
    """The second half repeats the first, from as far away as the data are long."""
    half = bytes((number * number * 7 + number // 3) % 251 for number in range(length // 2))
    data = half + half
    assert len(compressed(data)) <= len(zlib.compress(data, 6)) + 2
