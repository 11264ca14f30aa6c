"""Names of saved queries, and values of their typed parameters."""

from __future__ import annotations

import math
from typing import Any

import pytest

from mlcore.entities.saved_queries import QueryParameter, Value
from mlcore.errors import InvalidParameterValue
from mlcore.limits import saved_queries as limits


@pytest.mark.parametrize("name", ["a", "7", "Cost-2.5_x", "x" * 100])
def test_names(name: str) -> None:
    limits.check_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "x" * 101, " a", "a b", "a/b", "..", ".a", "-a", "a\n", "é", "a#b", "a\x00", "ａ", "%41"],
)
def test_no_names(name: str) -> None:
    with pytest.raises(InvalidParameterValue, match="1 to 100 characters"):
        limits.check_name(name)


@pytest.mark.parametrize(
    ("kind", "sent", "value"),
    [
        ("text", "a'; DROP TABLE x --", "a'; DROP TABLE x --"),
        ("text", "", ""),
        ("integer", 7, 7),
        ("integer", "-9223372036854775808", -(2**63)),
        ("integer", "+3", 3),
        ("number", 7, 7.0),
        ("number", "1e-3", 0.001),
        ("number", "-Infinity", -math.inf),
        ("boolean", "TRUE", True),
        ("boolean", False, False),
        ("date", "2024-02-29", "2024-02-29"),
        ("timestamp", "2026-01-31", "2026-01-31 00:00:00+00:00"),
        ("timestamp", "2026-01-31T12:30Z", "2026-01-31 12:30:00+00:00"),
        ("timestamp", "2026-01-31 12:30:05.25-02:00", "2026-01-31 14:30:05.250000+00:00"),
        *((kind, None, None) for kind in ("text", "integer", "boolean", "timestamp")),
    ],
)
def test_values(kind: str, sent: Any, value: Value) -> None:
    parsed = limits.value_of(QueryParameter("p", kind), sent)
    assert (type(parsed), parsed) == (type(value), value)


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        *(("text", sent) for sent in (7, True, ["a"], {"a": 1}, "\x00", "\ud800", "x" * 1001)),
        *(("integer", sent) for sent in (True, 7.0, "7.0", "", " 7", "0x7", "७", 2**63, "9" * 19)),
        *(("integer", sent) for sent in ("7; SELECT", [7], "1_000")),
        *(("number", sent) for sent in (True, "", "nan", "1_0", "٣", "1e", [1.0], 10**400)),
        *(("boolean", sent) for sent in (1, 0, "1", "yes", "", [True])),
        *(("date", sent) for sent in ("2026-02-30", "20260131", "0000-01-01", 20260131, "today")),
        *(("date", sent) for sent in ("2026-01-31T00:00", " 2026-01-31")),
        *(("timestamp", sent) for sent in ("now", 0, "2026-01-31T25:00", "2026-W01-1", "")),
        *(("timestamp", sent) for sent in ("0001-01-01T00:00+10:00", "2026-01-31T12:00:00+99:00")),
    ],
)
def test_no_values(kind: str, sent: Any) -> None:
    with pytest.raises(InvalidParameterValue, match="parameter 'p' must be"):
        limits.value_of(QueryParameter("p", kind), sent)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        "a",
        ["a"],
        [[]],
        [{}],
        [{"name": "a"}],
        [{"name": "a", "type": "bigint"}],
        [{"name": "a", "type": ["text"]}],
        [{"name": "a b", "type": "text"}],
        [{"name": "", "type": "text"}],
        [{"name": None, "type": "text"}],
        [{"name": "a", "type": "text", "Default": "x"}],
        [{"name": "a", "type": "integer", "default": "x"}],
        [{"name": "a", "type": "text"}, {"name": "a", "type": "date"}],
        [{"name": f"p{number}", "type": "text"} for number in range(51)],
    ],
)
def test_no_parameters(sent: Any) -> None:
    with pytest.raises(InvalidParameterValue):
        limits.declared_parameters(sent)


def test_each_parameter_gets_a_value() -> None:
    declared = limits.declared_parameters(
        [
            {"name": "since", "type": "date"},
            {"name": "top", "type": "integer", "default": "10"},
            {"name": "user", "type": "text", "default": None},
        ]
    )
    assert limits.values_of(declared, {"since": "2026-01-31"}) == {
        "since": "2026-01-31",
        "top": 10,
        "user": None,
    }
    given = {"since": None, "top": 1, "user": "ann"}
    assert limits.values_of(declared, given) == given
    with pytest.raises(InvalidParameterValue, match=r"'since' \(date\) has no value"):
        limits.values_of(declared, {"top": 1})
    with pytest.raises(InvalidParameterValue, match="no parameter 'Since'"):
        limits.values_of(declared, {"since": "2026-01-31", "Since": "2026-01-31"})
