"""Which index entries the planner asks for."""

from __future__ import annotations

import pytest

from mlcore.search import fields, grammar, run_plan, text_fields
from mlcore.search.text_fields import IndexedFields


def accesses(text: str) -> list[run_plan.Access]:
    return run_plan.accesses(grammar.parse_filter(text, fields.RUN))


def names(text: str) -> list[str]:
    return [type(access).__name__ for access in accesses(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tags.owner ILIKE '%ann%'", ["TextLookups"]),
        ("tags.owner = 'ann'", ["TextLookups"]),
        ("tags.owner LIKE '%an%'", []),
        ("tags.owner != 'ann'", []),
        ("tags.owner IS NULL", []),
        ("run_name LIKE 'ann%'", ["NamePrefix"]),
        ("run_name LIKE '%ann'", ["TextLookups"]),
        ("run_name LIKE '_'", []),
        ("params.p LIKE '%ann%'", ["ParamTexts", "TextLookups"]),
        ("params.p = 'ann'", ["ParamValue", "TextLookups"]),
        ("params.p != 'a'", ["ParamTexts"]),
        ("params.p IS NOT NULL", ["ParamTexts"]),
        ("params.p IS NULL", []),
        ("user_id = 'ann'", ["TextLookups"]),
        ("artifact_uri = 'ann'", []),
        ("dataset.name LIKE '%a%'", ["DatasetLinks"]),
        ("dataset.context = 'a'", ["DatasetLinks"]),
        ("metrics.m > 1 AND tags.t = 'abc'", ["MetricRange", "TextLookups"]),
        ("metrics.m != 1", []),
        ("start_time > 1", []),
    ],
)
def test_the_accesses_of_a_filter(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_a_name_has_one_field_by_all_its_names() -> None:
    accessed = accesses("run_name ILIKE '%ann%' AND tags.mlflow.runName ILIKE '%ann%'")
    assert len(set(accessed)) == 1


@pytest.mark.parametrize(
    ("pattern", "begin"), [("a%b", "a"), ("a_b", "a"), ("%b", ""), ("ab", "ab"), ("a_%", "a")]
)
def test_a_param_is_looked_for_where_its_pattern_begins(pattern: str, begin: str) -> None:
    (first, *_) = accesses(f"params.p LIKE '{pattern}'")
    assert isinstance(first, run_plan.ParamTexts)
    assert first.begin == begin
    (folded, *_) = accesses(f"params.p ILIKE '{pattern}'")
    assert isinstance(folded, run_plan.ParamTexts)
    assert folded.begin == ""


def test_the_fields_that_a_setting_asks_for() -> None:
    default = text_fields.parse_setting(None)
    assert [
        field for field in ("name", "tags.a", "tags.mlflow.a", "params.a") if default.covers(field)
    ] == ["name", "tags.a"]
    chosen = text_fields.parse_setting(["params.*", "tags.mlflow.user"])
    assert chosen.covers("params.a b")
    assert chosen.covers("tags.mlflow.user")
    assert not chosen.covers("tags.mlflow.source")
    assert text_fields.parse_setting([]).covers("name")
    assert text_fields.parse_setting({"no": "list"}) == default


def test_an_index_of_other_rules_is_none() -> None:
    whole = IndexedFields(["tags.*"]).encode()
    assert text_fields.decode(whole) == IndexedFields(["tags.*"])
    assert text_fields.decode(whole.replace('"rules": 2', '"rules": 0')) is None
    assert text_fields.decode(None) is None
