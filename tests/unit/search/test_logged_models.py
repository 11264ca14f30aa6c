from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.entities.logged_models import LoggedModel, ModelMetric
from mlcore.errors import AttributeNotFound, BadRequest, InvalidParameterValue
from mlcore.search import logged_models as language
from mlcore.search.logged_models import (
    MetricDataset,
    ModelIds,
    ModelOrderBy,
    ModelsByName,
    ModelsByRun,
)


def model(**changed: Any) -> LoggedModel:
    base = LoggedModel(
        model_id="m-1",
        experiment_id="0",
        name="n",
        artifact_location="mlflow-artifacts:/0/models/m-1/artifacts",
        creation_time=10,
        last_update_time=20,
        status="LOGGED_MODEL_READY",
        lifecycle_stage="active",
        model_type="",
        source_run_id="r",
        params={"p": "x"},
        tags={"t g": "y"},
        metrics=(
            ModelMetric("a", 1.0, 5, 0, "r"),
            ModelMetric("a", 3.0, 4, 9, "r", "d", "1"),
        ),
    )
    return base._replace(**changed)


def holds(text: str, *datasets: MetricDataset, **changed: Any) -> bool:
    is_match = language.predicate(language.parse_filter(text), datasets)(model(**changed))
    assert isinstance(is_match, bool)
    return is_match


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "name = n",
            "name = 'n'",
            "attributes.name LIKE '_'",
            "status = READY",
            "status='READY'",
        ),
        *("params.p = x", "tags.`t g` ILIKE 'Y'", "creation_time <= 10", "model_type = ''"),
        *("metrics.a > 2 AND metrics.a < 4", "metrics.a != 1", "model_id IN ('m-1', 'x')"),
    ],
)
def test_matches(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            'name = "n"',
            "status = 'PENDING'",
            "status NOT IN ('READY')",
            "metrics.a < 2",
            "params.q != 'x'",
            "metrics.a != nan",
        ),
        *("creation_time != nan", "status_message != 'x'", "name IN ()", "metrics.b > 0"),
    ],
)
def test_does_not_match(text: str) -> None:
    assert not holds(text)


def test_points_of_a_dataset_alone_count() -> None:
    assert holds("metrics.a > 2", MetricDataset("d", "1"))
    assert not holds("metrics.a < 2", MetricDataset("d", "1"))
    assert holds("name = 'n'", MetricDataset("x", "2"), MetricDataset("d", "1"))
    assert not holds("", MetricDataset("d", "2"))
    assert not holds("", MetricDataset("d", None)), "MLflow's server takes no digest for none"


@pytest.mark.parametrize(
    "text",
    [
        *("name", "name = 'a' OR name = 'b'", "foo = 'a'", "metrics.a LIKE '1'", "metrics.a = '1'"),
        *(" ", "status = 2", "status LIKE 'R%'", "status IN ('READY', 'x')", "status = ready"),
    ],
)
def test_refusals(text: str) -> None:
    with pytest.raises(InvalidParameterValue):
        language.parse_filter(text)


@given(st.text(alphabet="name.metrics`'\"()=<>!, INLKE1;AD\n", max_size=40) | st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        comparisons = language.parse_filter(text)
    except (InvalidParameterValue, BadRequest):
        return
    language.predicate(comparisons, ())(model())


def test_access() -> None:
    def access(text: str) -> object:
        return language.access(language.parse_filter(text))

    assert access("name = 'a' AND params.p = 'x'") == ModelsByName("a")
    assert access("name = 'a' AND source_run_id = 'r'") == ModelsByRun("r")
    assert access("name = 'a' AND model_id IN ('1', '2')") == ModelIds(("1", "2"))
    for text in ("", "name != 'a'", "name LIKE 'a'", "params.name = 'a'", "source_run_id = ''"):
        assert access(text) is None


def test_a_field_that_is_not_there_has_an_error_class_of_its_own() -> None:
    with pytest.raises(AttributeNotFound) as raised:
        language.parse_order("nope", True, MetricDataset("", None))
    assert raised.value.body()["error_class"] == "ATTRIBUTE_NOT_FOUND"


def test_the_latest_point_counts_in_orders() -> None:
    for order, expected in (
        (ModelOrderBy("a", True, True), (0, 3.0)),
        (ModelOrderBy("a", False, True), (0, -3.0)),
        (ModelOrderBy("a", True, True, "d", "1"), (0, 3.0)),
        (ModelOrderBy("b", False, True), (2, 0)),
    ):
        key = language.sort_key([order])(model())
        assert key[:2] == expected
        assert key[2:] == (0, -10, 0, "m-1")


@given(
    st.lists(
        st.builds(
            ModelOrderBy,
            st.sampled_from(["name", "creation_timestamp_ms", "status", "status_message", "a"]),
            st.booleans(),
        ).map(lambda order: order._replace(metric=order.key == "a")),
        max_size=3,
    )
)
def test_keys_travel_in_tokens(ordering: list[ModelOrderBy]) -> None:
    key = language.sort_key(ordering)(model())
    restored = language.restore_key(json.loads(json.dumps(key)), ordering)
    assert restored == key


@pytest.mark.parametrize(
    "forged",
    [
        *(
            None,
            [],
            [0, -10],
            [0, "x", 0, "m"],
            [0, -10, 0, 5],
            [1, -10, 0, "m"],
            [0, None, 0, "m"],
        ),
        *(
            [0, 10**30, 0, "m"],
            [0, -10, 0, "\ud800"],
            [0, math.inf, 0, "m"],
            [0, -(2**63), 0, "m"],
            [0, 1.5, 0, "m"],
        ),
    ],
)
def test_forged_keys_are_refused(forged: Any) -> None:
    with pytest.raises(InvalidParameterValue):
        language.restore_key(forged, [])
