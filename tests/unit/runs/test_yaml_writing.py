"""YAML that is written: PyYAML reads of it what was to be written, and would write it so."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from runs.yaml_writing import Plain, dump

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    (
        "",
        "no",
        "Null",
        "1",
        "0x1F",
        "1e3",
        "~",
        "a: b",
        "a #b",
        "- a",
        "<<",
        "=",
        "it's",
        "k" * 2000,
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4) | st.lists(VALUES, min_size=1))
@example({"a": "\x00\x7f\x85\ufeff\u2028\U0001f600\t\r\n"})
def test_what_is_written_is_read(value: Plain) -> None:
    assert yaml.safe_load(dump(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"b": [], "c": {}, "d": ["x", "z"]}, "e": None, "g": False},
        {"plain": "mlflow.prompt", "number": "0.5", "word": "yes", "said": "it's: so"},
        {"list": ["python=3.13.1", {"pip": ["mlflow[gateway]==3.17.2"]}], "name": "env"},
    ],
)
def test_it_looks_as_pyyaml_writes_it(value: dict[str, Plain]) -> None:
    assert dump(value) == yaml.safe_dump(value, sort_keys=False, default_flow_style=False)
