"""A search by the beginning of a text finds it, although keys shorten long texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlcore.db import keys

RUN = "0" * 32
CHARACTERS = st.sampled_from("a#$!\u00e9\u6f22\U0001f600")
"""Of one to four bytes; the first ones are escaped."""
TEXTS = st.builds(
    lambda end, times, begin: begin + end * times,
    CHARACTERS,
    st.integers(0, 500),
    st.text(CHARACTERS, max_size=5),
)


@given(TEXTS, st.integers(0, 500), st.sampled_from(["p", "k" * 250]))
def test_a_key_begins_with_the_prefix_of_each_beginning(text: str, length: int, name: str) -> None:
    begin = text[:length]
    assert keys.rank_param("1", name, text, RUN).sk.startswith(keys.rank_param_begin(name, begin))
    assert keys.lsi4_run(text, RUN).startswith(keys.lsi4_run_begin(begin))
    assert keys.lsi4_trace(text, RUN).startswith(keys.lsi4_trace_begin(begin))
    token = keys.fts("1", "word", text, "run", RUN)
    assert token.sk.startswith(keys.fts_begin("word", begin))
    listed = keys.gsi5_experiment("team", text)
    first = keys.gsi5_experiment_begin("team", begin)
    assert listed.pk == first.pk
    assert listed.sk.startswith(first.sk)
    low, high = keys.gsi5_model_range(begin, "", descending=False)
    assert not text or low <= keys.gsi5_model("team", text).sk <= high
