"""The kept results of queries, against a plain list of what was kept."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import process_cache
from sql.result_cache import KEPT_SECONDS, ResultCache, key_of

MOST = 100
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.sampled_from("abcd"), st.integers(0, MOST + 10)),
        st.tuples(st.just("get"), st.sampled_from("abcd"), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.integers(1, int(KEPT_SECONDS))),
    ),
    max_size=40,
)


@given(_STEPS)
def test_latest_results_that_fit_are_kept_for_a_time(steps: list[tuple[str, str, int]]) -> None:
    now = 0.0
    clocks = SimpleNamespace(monotonic=lambda: now, time=lambda: now)
    cache = ResultCache(MOST)
    kept: dict[str, tuple[float, str, bytes]] = {}  # in the order of their use
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_cache, "time", clocks)
        for number, (act, key, size) in enumerate(steps):
            kept = {name: result for name, result in kept.items() if result[0] + KEPT_SECONDS > now}
            if act == "wait":
                now += size
            elif act == "get":
                result = cache.get(key)
                assert (result is None) == (key not in kept)
                if result:
                    assert (result.versions, result.output) == kept[key][1:]
                    kept[key] = kept.pop(key)
            else:
                cache.keep(key, f"v{number}", bytes(size))
                kept.pop(key, None)
                kept[key] = (now, f"v{number}", bytes(size))
                while sum(len(name) + len(output) for name, (*_, output) in kept.items()) > MOST:
                    kept.pop(next(iter(kept)))


def test_keys_are_of_callers_who_read_all_rows() -> None:
    keys = [
        key_of({"sql": sql, "parameters": parameters, "workspaces": None, "format": form})
        for sql in ("SELECT 1", "SELECT  1")
        for parameters in ({}, {"a": 1}, {"a": "1"}, {"a": True}, {"a": 1.0}, {"b": 1})
        for form in ("json", "csv")
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    for workspaces, audited in (([], None), (["default"], None), (None, []), (None, ["default"])):
        assert key_of({"sql": "SELECT 1", "workspaces": workspaces, "audited": audited}) is None
