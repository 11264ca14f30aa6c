"""Which files name sources, how several are merged, and which names a pattern stands for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_loader import configuration
from catalog_loader.configuration import matches
from catalog_loader.field_checks import InvalidField

LETTERS = st.text("aB.*", max_size=8)


@given(LETTERS, st.text("aAbB.", max_size=8))
def test_a_pattern_is_what_its_expression_matches(pattern: str, name: str) -> None:
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    match = re.fullmatch(expression, name, re.IGNORECASE)
    assert matches(pattern, name) == (match is not None)


def test_a_pattern_of_stars_is_cheap() -> None:
    assert not matches("*a" * 200 + "b", "a" * 5000)


def test_files_that_name_sources() -> None:
    names = [
        *("sources.yaml", "a-SOURCES.yml", "models.yaml", "sub/sources.yaml", "sources.txt"),
        *("workspaces/team/sources.yaml", "workspaces/team/more/sources.yaml"),
    ]
    assert configuration.defining_files(names) == [
        "a-SOURCES.yml",
        "sources.yaml",
        "workspaces/team/sources.yaml",
    ]


def test_the_later_file_wins_field_by_field() -> None:
    first = {"id": "a", "name": "A", "type": "yaml", "properties": {"yamlCatalogPath": "x.yaml"}}
    merge = configuration.merge(
        [
            ("1.yaml", {"catalogs": [first]}),
            ("2.yaml", {"model_catalogs": [{"id": "a", "enabled": False, "labels": ["L", " "]}]}),
            ("workspaces/w/s.yaml", {"model_catalogs": [{"id": "a", "type": "yaml"}]}),
        ]
    )
    shared, own = merge.sources
    assert (shared.name, shared.enabled, shared.labels) == ("A", False, ("L",))
    assert (shared.folder, shared.properties) == ("", {"yamlCatalogPath": "x.yaml"})
    assert (own.workspace, own.key, own.name) == ("w", "w/a", "a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"catalog": []}, 'unknown field "catalog"'),
        ({"catalogs": [{"id": "a", "tipe": "x"}]}, 'unknown field "tipe"'),
        ({"catalogs": [{"id": "a"}], "model_catalogs": [{"id": "a"}]}, "duplicate source id"),
        ({"catalogs": [{"name": "a"}]}, "id is required"),
        ({"catalogs": [{"id": "a/b"}]}, "letters, digits"),
        ({"catalogs": [{"id": "a", "enabled": "yes"}]}, "true or false"),
        ({"catalogs": "a"}, "must be a list"),
        ({"labels": [{"displayName": "x"}]}, "name is required"),
        ({"labels": [{"name": "x", "assetType": "pictures"}]}, "assetType"),
        ({"namedQueries": {"q": {"f": {"operator": "~", "value": 1}}}}, "must be one of"),
        ([], "must be a mapping"),
    ],
)
def test_what_is_wrong_is_said(data: object, message: str) -> None:
    with pytest.raises(InvalidField, match=message):
        configuration.merge([("s.yaml", data)])


def test_named_queries_in_both_forms() -> None:
    condition = {"operator": ">", "value": 1}
    merge = configuration.merge(
        [
            (
                "s.yaml",
                {
                    "namedQueries": {
                        "old": {"f": condition},
                        "new": {"assetType": "mcp_servers", "filters": {"g": condition}},
                    }
                },
            )
        ]
    )
    assert merge.queries == {
        "models": {"old": {"f": condition}},
        "mcp_servers": {"new": {"g": condition}},
    }


def test_what_is_said_of_other_assets_is_passed_over() -> None:
    """A newer server's files name catalogs of agents and skills too."""
    other = {"name": "L", "assetType": "agents"}
    query = {"assetType": "skills", "filters": {"name": {"operator": "=", "value": "x"}}}
    with_others = {
        "catalogs": [{"id": "a", "type": "yaml"}],
        "agent_catalogs": [{"id": "b", "anything": 1}],
        "skill_catalogs": [],
        "labels": [other, {"name": None}],
        "namedQueries": {"q": query},
    }
    merge = configuration.merge([("s.yaml", with_others)])
    assert [source.id for source in merge.sources] == ["a"]
    assert merge.labels == ({"name": None, "assetType": "models"},)
    assert merge.queries == {}
