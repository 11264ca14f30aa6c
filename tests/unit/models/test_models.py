import subprocess
import sys
import timeit
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pynamodb.attributes import Attribute, UnicodeAttribute
from pynamodb.exceptions import AttributeNullError
from pynamodb.indexes import GlobalSecondaryIndex

from mlcore.db import client, keys
from mlcore.db.attribute_types import (
    BytesAttribute,
    DoubleAttribute,
    FlagAttribute,
    FlagMapAttribute,
    IntAttribute,
    ItemAttribute,
    TextAttribute,
    TextMapAttribute,
    TextSetAttribute,
)
from mlcore.db.expression import string
from mlcore.db.item_serialization import compile_writer
from mlcore.db.item_views import compile_view
from mlcore.db.pynamodb_classes import Model
from mlcore.environment import settings
from mlcore.models import base
from mlcore.models.by_type import MODELS
from mlcore.models.experiments import Experiment
from mlcore.models.runs import Run, RunMetric

STRATEGIES: dict[type[Attribute[Any]], st.SearchStrategy[Any]] = {
    TextAttribute: st.text(),
    IntAttribute: st.integers(-(10**37), 10**37),
    DoubleAttribute: st.floats(allow_nan=False),
    FlagAttribute: st.booleans(),
    BytesAttribute: st.binary(),
    TextMapAttribute: st.dictionaries(st.text(), st.text(), max_size=3),
    FlagMapAttribute: st.dictionaries(st.text(), st.booleans(), max_size=3),
    TextSetAttribute: st.frozensets(st.text(), min_size=1, max_size=3),
}


def raw_items(
    model: type[base.Item], *, complete: bool = False
) -> st.SearchStrategy[dict[str, Any]]:
    """Items with all that the model demands, any of what it does not (some of it NULL), and one
    attribute that the model does not know; ``complete`` ones have all that it knows alone."""
    required, optional = {}, {}
    for attribute in model.get_attributes().values():
        assert isinstance(attribute, ItemAttribute)
        value = STRATEGIES[type(attribute)].map(attribute.raw)
        if isinstance(attribute, TextMapAttribute) and not complete:
            value |= STRATEGIES[TextMapAttribute].map(attribute.text).map(string)
        if complete or not attribute.null:
            required[attribute.attr_name] = value
        else:
            optional[attribute.attr_name] = value | st.just({"NULL": True})
    if not complete:
        optional["unknown"] = st.just({"S": "x"})
    return st.fixed_dictionaries(required, optional=optional)


def values_of(model: type[base.Item], item: dict[str, Any]) -> dict[str, Any]:
    read = model.of(item)
    return {name: getattr(read, name) for name in model.get_attributes()}


def test_every_pattern_has_a_model_and_every_model_a_pattern() -> None:
    assert {name: model.pattern for name, model in MODELS.items()} == keys.PATTERNS


@given(st.data())
def test_items_are_read_as_pynamodb_reads_them(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(list(MODELS.values())))
    item = data.draw(raw_items(model))
    expected = model.from_raw_data(item).attribute_values
    assert {k: v for k, v in values_of(model, item).items() if v is not None} == expected


@given(st.data())
def test_items_are_written_as_they_are_read(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(list(MODELS.values())))
    item = data.draw(raw_items(model, complete=True))
    assert model(**values_of(model, item)).serialize() == item


@given(st.data())
def test_items_are_written_as_pynamodb_writes_them(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(list(MODELS.values())))
    item = data.draw(raw_items(model))
    lacking = data.draw(st.sampled_from([None, *model.get_attributes()]))
    values = {**values_of(model, item), **({lacking: None} if lacking else {})}
    expected: Any
    try:
        expected = Model.serialize(model(**values))
    except AttributeNullError as error:
        expected = str(error)

    try:
        written: Any = model(**values).serialize()
    except AttributeNullError as error:
        written = str(error)

    assert written == expected


def test_a_value_that_no_attribute_is_declared_for_is_refused() -> None:
    with pytest.raises(ValueError, match="RunMetric has no attribute stepp"):
        RunMetric(PK="p", SK="s", key="k", stepp=1).serialize()


def test_a_writer_refuses_defaults_that_it_would_not_set() -> None:
    class Defaulted(base.Item):
        """Has a default for new items."""

        stage = UnicodeAttribute(default_for_new="active")

    with pytest.raises(TypeError, match="stage"):
        compile_writer(Defaulted)


def test_what_an_item_must_have_and_lacks_is_no_none() -> None:
    with pytest.raises(KeyError, match="run_id"):
        _ = Run.of({"PK": {"S": "EXP#1"}}).run_id


def test_a_view_refuses_defaults_that_it_would_not_set() -> None:
    class Defaulted(base.Item):
        """Has a default for loaded items."""

        stage = UnicodeAttribute(default="active")

    with pytest.raises(TypeError, match="stage"):
        compile_view(Defaulted)


def test_reading_is_fast() -> None:
    item = Run(
        PK="EXP#1",
        SK="R#r",
        run_id="r",
        experiment_id="1",
        run_name="n",
        user_id="u",
        status="RUNNING",
        start_time=1,
        artifact_uri="a",
    ).serialize(null_check=False)

    def read() -> tuple[Any, ...]:
        run = Run.of(item)
        return run.run_id, run.run_name, run.status, run.start_time, run.end_time

    seconds = min(timeit.repeat(read, number=1000, repeat=5)) / 1000
    assert seconds < 20e-6  # 0.7 µs on a quiet machine


@pytest.mark.parametrize("name", MODELS)
def test_items_state_their_type(name: str) -> None:
    item = MODELS[name](PK="p", SK="s").serialize(null_check=False)
    assert item["type"] == {"S": name}


def test_what_must_be_there_must_be_there() -> None:
    with pytest.raises(AttributeNullError, match="value"):
        RunMetric(PK="p", SK="s", key="k", step=1, timestamp=2).serialize()


def test_indexes_are_declared() -> None:
    declared = {
        name: isinstance(index, GlobalSecondaryIndex) for name, index in Experiment._indexes.items()
    }
    assert declared == {f"{kind}{n}": kind == "GSI" for kind in ("LSI", "GSI") for n in range(1, 6)}


def test_models_have_what_their_index_keys_need() -> None:
    entities = {
        "model": "registered_model",
        "workspace_model": "registered_model",
        "metric_history": "run_metric_history",
        "number": "artifact",
        "created": "artifact",
        "updated": "artifact",
        "unseen": "registered_model",
        "run_mark": "run",
    }
    for name, pattern in keys.INDEXES.items():
        entity = name.partition("_")[2]
        attributes = MODELS[entities.get(entity, entity)].get_attributes()
        number = pattern.index[3:]
        wanted = (
            {f"lsi{number}sk"} if pattern.index[0] == "L" else {f"gsi{number}pk", f"gsi{number}sk"}
        )
        assert wanted <= set(attributes)


def test_the_table_is_named_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    settings.cache_clear()
    monkeypatch.setenv("TABLE_NAME", "named-later")
    try:
        assert Run.Meta.table_name == "named-later"
    finally:
        settings.cache_clear()


@pytest.fixture
def fresh_connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (client.client, settings, base._shared_connection)
    monkeypatch.setenv("TABLE_NAME", "mlflow-models")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("fresh_connection")
def test_all_models_share_one_client() -> None:
    clients = {id(model._get_connection().connection.client) for model in MODELS.values()}
    assert clients == {id(client.client())}


@pytest.mark.usefixtures("fresh_connection")
def test_pynamodb_writes_requests_for_the_shared_table() -> None:
    request = Run._get_connection().get_operation_kwargs("EXP#1", "R#r")
    assert request["TableName"] == "mlflow-models"
    assert request["Key"] == {"PK": {"S": "EXP#1"}, "SK": {"S": "R#r"}}


def test_a_collection_is_imported_without_the_others() -> None:
    code = (
        "import sys, mlcore.models.runs;"
        "print(*sorted(m for m in sys.modules if m.startswith('mlcore.models.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mlcore.models.base", "mlcore.models.runs"]
