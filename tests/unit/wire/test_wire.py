"""Decoding by example; the generated comparison with MLflow's server is in tests/differential."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.wire import (
    Int32,
    Message,
    array,
    at_most,
    boolean,
    encode,
    enum,
    fields_present,
    intlike,
    required,
    string,
    within,
)

MISFIT = "It does not fit the type of the parameter."
SEE = " See the API docs for more information about request parameters."


class Point(Message):
    key: str
    some_value: float


class Everything(Message):
    name: str
    count: int
    small: Int32 = 7
    ratio: float
    flag: bool
    state: Annotated[str | None, enum(ON=1, OFF=2)]
    names: list[str]
    states: list[Annotated[str | None, enum(ON=1, OFF=2)]]
    point: Point | None
    points: list[Point]
    labels: dict[str, str]
    by_name: dict[str, Point]
    extra: Any
    run_id: str


def decode(**data: Any) -> Everything:
    return Everything.decode(data)


def misfit(**data: Any) -> str:
    """The message that refuses the data."""
    with pytest.raises(InvalidParameterValue) as refusal:
        decode(**data)
    assert MISFIT + SEE in refusal.value.message
    return refusal.value.message.removesuffix(MISFIT + SEE)


def test_unset_fields_read_as_defaults() -> None:
    message = decode()
    assert (message.name, message.count, message.small, message.ratio) == ("", 0, 7, 0.0)
    assert (message.flag, message.state, message.point, message.extra) == (False, None, None, None)
    assert (message.names, message.points, message.labels) == ([], [], {})
    assert not message.has("name")


def test_default_lists_are_not_shared() -> None:
    message = decode()
    message.names.append("x")
    assert message.names == []
    assert decode().names == []


def test_messages_can_be_made_directly() -> None:
    message = Everything(name="a", points=[Point(key="k")])
    assert message == decode(name="a", points=[{"key": "k"}])
    assert message != decode(name="b")
    assert message.points[0].some_value == 0.0
    assert repr(message) == "Everything(name='a', points=[Point(key='k')])"


def test_null_is_unset() -> None:
    assert not decode(name=None, points=None).has("name")


def test_unknown_keys_are_skipped() -> None:
    assert decode(**{"bogus": 1, "[x]": 1, "name": "a"}) == Everything(name="a")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, 5), ("5", 5), (5.0, 5), ("5.0", 5), ("1e2", 100), (2**63 - 1, 2**63 - 1), ("-3", -3)],
)
def test_integers(value: Any, expected: int) -> None:
    assert decode(count=value).count == expected


@pytest.mark.parametrize("value", [1.5, "1.5", "x", " 1", True, [], {}, 2**63, -(2**63) - 1, ""])
def test_no_integers(value: Any) -> None:
    assert "'count'" in misfit(count=value)


def test_int32_has_a_smaller_range() -> None:
    assert decode(small=2**31 - 1).small == 2**31 - 1
    assert misfit(small=2**31) == "Invalid value 2147483648 for parameter 'small' supplied: "


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        (1.5, 1.5),
        ("1.5", 1.5),
        (True, 1.0),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
    ],
)
def test_doubles(value: Any, expected: float) -> None:
    assert decode(ratio=value).ratio == expected


def test_nan_must_be_quoted() -> None:
    assert math.isnan(decode(ratio="NaN").ratio)


@pytest.mark.parametrize("value", [math.nan, math.inf, "nan", "x", "", [], {}, 10**400])
def test_no_doubles(value: Any) -> None:
    assert "'ratio'" in misfit(ratio=value)


@pytest.mark.parametrize(("value", "expected"), [("ON", "ON"), (2, "OFF"), ("2", "OFF")])
def test_enums(value: Any, expected: str | None) -> None:
    assert decode(state=value).state == expected
    assert decode(states=["ON", value]).states == ["ON", expected]


@pytest.mark.parametrize("value", ["on", "", "9", 9, 1.5e300, math.inf, math.nan, []])
def test_no_enums(value: Any) -> None:
    assert "'state'" in misfit(state=value)
    assert "'states'" in misfit(states=["ON", value])


def test_unpaired_surrogates_are_no_text() -> None:
    assert misfit(name="\ud800") == "Invalid value \"\\ud800\" for parameter 'name' supplied: "
    assert decode(name="é😀").name == "é😀"


@pytest.mark.parametrize(
    "value", ["\ud800", ["a", "\ud800"], {"a": {"b": "\udc00"}}, {"\ud800": 1}]
)
def test_no_value_of_any_type_has_unpaired_surrogates(value: Any) -> None:
    assert "'extra'" in misfit(extra=value)


@pytest.mark.parametrize("value", ["é😀", ["é"], {"😀": {"b": None}}, 1.5, True, None, math.nan])
def test_values_of_any_type_are_kept(value: Any) -> None:
    assert decode(extra=value).extra is value


def test_nested_values() -> None:
    message = decode(
        point={"key": "a"},
        points=[{"someValue": 1}, {"some_value": "2"}],
        labels={"a": "b"},
        byName={"x": {"key": "y"}},
        extra={"any": ["thing"]},
    )
    assert message.point == Point(key="a")
    assert [point.some_value for point in message.points] == [1.0, 2.0]
    assert message.labels == {"a": "b"}
    assert message.by_name == {"x": Point(key="y")}
    assert message.extra == {"any": ["thing"]}


def test_the_first_misfit_is_named_by_its_path() -> None:
    points = [{"key": "a"}, {"key": "b", "someValue": "x"}, {"key": 5}]
    expected = "Invalid value \"x\" for parameter 'points.someValue' supplied: "
    assert misfit(name="n", points=points, count="later") == expected
    expected = "Invalid value 5 for parameter 'by_name.key' supplied: "
    assert misfit(by_name={"x": {"key": 5}}) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [("points", {}), ("points", [None]), ("points", [5]), ("names", "a"),
     ("names", [None]), ("names", [1]),
     ("labels", []), ("labels", {"a": None}), ("by_name", []), ("by_name", {"a": 1}),
     ("flag", "true"), ("name", 5),
     ("state", []), ("point", 5), ("point", ["x"]), ("point", "x")],
)  # fmt: skip
def test_misfits(field: str, value: Any) -> None:
    assert f"for parameter '{field}' supplied: " in misfit(**{field: value, "run_id": "after"})


def test_two_spellings_of_a_field_are_refused_at_any_depth() -> None:
    for data in (
        {"run_id": "a", "runId": "a"},
        {"points": [{"key": "a"}, {"some_value": 1, "someValue": 1}]},
        {"count": "stops here", "point": {"some_value": None, "someValue": 1}},
    ):
        with pytest.raises(InvalidParameterValue, match="provide only one of them"):
            Everything.decode(data)


@pytest.mark.parametrize(
    ("checks", "data", "text"),
    [
        ({"name": (required,)}, {}, "Missing value for required parameter 'name'." + SEE),
        ({"name": (required,)}, {"name": ""}, "Missing value for required parameter 'name'." + SEE),
        (
            {"name": (required, string)},
            {"name": 5},
            "Invalid value 5 for parameter 'name' supplied:  Hint: Value was of type 'int'." + SEE,
        ),
        (
            {"count": (intlike,)},
            {"count": {"b": 1, "a": "é"}},
            'Invalid value {"a":"\\u00e9","b":1} for parameter \'count\' supplied:  '
            "Hint: Value was of type 'dict'." + SEE,
        ),
        ({"count": (within(1, 3, "1 to 3."),)}, {"count": 4}, "1 to 3." + SEE),
        (
            {"count": (at_most(3),)},
            {"count": None},
            "Invalid value null for parameter 'count' supplied:  "
            "Hint: Value was of type 'NoneType'." + SEE,
        ),
        (
            {"points": (array, fields_present("points", "key"))},
            {"points": [{"key": "a"}, {}]},
            "Missing value for required parameter 'points[1].key'." + SEE,
        ),
        (
            {"points": (array, fields_present("points", "key"))},
            {"points": ["x"]},
            "Invalid value [\"x\"] for parameter 'points' supplied:  "
            "Hint: Value was of type 'list'." + SEE,
        ),
        (
            {"flag": (boolean,)},
            {"flag": "x"},
            "Invalid value \"x\" for parameter 'flag' supplied:  Hint: Value was of type 'str'."
            + SEE,
        ),
    ],
)
def test_checks(checks: Any, data: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidParameterValue) as failure:
        Everything.decode(data, checks)
    assert failure.value.message == text


def test_types_are_checked_only_when_parsing_stopped() -> None:
    assert Everything.decode({"count": "5"}, {"count": (string, intlike)}).count == 5
    checks = {"name": (string,)}
    with pytest.raises(InvalidParameterValue):
        Everything.decode({"count": "x", "name": 5}, checks)


def test_run_uuid_stands_for_a_missing_run_id() -> None:
    Everything.decode({"run_uuid": "a"}, {"run_id": (required,)})


@pytest.mark.parametrize("body", [None, 5, True, 1.5, "name", [], ["name"], [{}]])
def test_bodies_that_are_no_objects_are_refused(body: Any) -> None:
    with pytest.raises(InvalidParameterValue, match="must be a JSON object, got"):
        Everything.decode(body)


def test_query_strings() -> None:
    message = Everything.from_query(
        {"names": ["a", "b"], "count": ["5", "6"], "flag": ["TRUE"], "byName": ["x"]}
    )
    assert message == Everything(names=["a", "b"], count=5, flag=True)
    with pytest.raises(InvalidParameterValue, match="Invalid boolean value: yes, must be"):
        Everything.from_query({"flag": ["yes"]})


def test_encoding() -> None:
    assert encode({"a": [1, 2.5, "é"], "b": {}}) == '{"a":[1,2.5,"\\u00e9"],"b":{}}'
    assert json.loads(encode({"a": [math.nan, {"b": math.inf}, (-math.inf, None)]})) == {
        "a": ["NaN", {"b": "Infinity"}, ["-Infinity", None]]
    }
