"""Filters and orders of logged models: parsing, matching, and which index to search.

MLflow has its own parser for logged models: outside lists, words need no quotes, the kinds of
fields are ``attributes``, ``metrics``, ``params`` and ``tags``, and attributes are the columns of
MLflow's table. Of a metric's points (with datasets: of theirs) only the latest counts: highest
step, then time, then value. Most error messages are MLflow's. An *access* (path) is a range of an
index, or a list of ids, that contains every model that can match.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlcore import paging
from mlcore.entities.logged_models import LoggedModel, ModelMetric
from mlcore.errors import AttributeNotFound, BadRequest, InvalidParameterValue
from mlcore.search import filter_tokens as t
from mlcore.search.clauses import (
    COMPARISON,
    NULL_CHECK,
    PARENTHESIS,
    ClauseItem,
    ClauseReader,
    parse_clauses,
)
from mlcore.search.like import ilike, like
from mlcore.search.sort_keys import MISSING, PRESENT, Key, sortable_experiment_id, value_field

ATTRIBUTES, METRICS, PARAMS, TAGS = "attributes", "metrics", "params", "tags"
_KINDS = [ATTRIBUTES, METRICS, PARAMS, TAGS]
_ALIASES = {
    "creation_time": "creation_timestamp_ms",
    "creation_timestamp": "creation_timestamp_ms",
    "last_updated_timestamp": "last_updated_timestamp_ms",
}
_STATUS_CODES = {
    "LOGGED_MODEL_STATUS_UNSPECIFIED": 0,
    "LOGGED_MODEL_PENDING": 1,
    "LOGGED_MODEL_READY": 2,
    "LOGGED_MODEL_UPLOAD_FAILED": 3,
}
_STATUS_NAMES = {"UNSPECIFIED": 0, "PENDING": 1, "READY": 2, "FAILED": 3}
"""Codes of the statuses as filters name them."""
_COLUMNS: dict[str, Callable[[LoggedModel], Any]] = {
    "model_id": operator.attrgetter("model_id"),
    "experiment_id": operator.attrgetter("experiment_id"),
    "name": operator.attrgetter("name"),
    "artifact_location": operator.attrgetter("artifact_location"),
    "creation_timestamp_ms": operator.attrgetter("creation_time"),
    "last_updated_timestamp_ms": operator.attrgetter("last_update_time"),
    "status": lambda model: _STATUS_CODES[model.status],
    "lifecycle_stage": operator.attrgetter("lifecycle_stage"),
    "model_type": operator.attrgetter("model_type"),
    "source_run_id": operator.attrgetter("source_run_id"),
    "status_message": lambda _model: None,
}
_TIMES = ("creation_timestamp_ms", "last_updated_timestamp_ms")
_NUMERIC = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_TEXT = ("=", "!=", "LIKE", "ILIKE", "IN", "NOT IN")
_FIELD = re.compile(r"^([a-z]+)\.(.+)$")

Value = str | float | tuple[str, ...]
Test = Callable[[Any], bool]


class ModelComparison(NamedTuple):
    kind: str
    key: str
    operator: str
    value: Value


class MetricDataset(NamedTuple):
    """A dataset to which metric points are restricted, by name and digest. Without a digest no
    point matches, as in MLflow."""

    name: str
    digest: str | None


class ModelOrderBy(NamedTuple):
    """An ordering of logged models by the field ``key`` or, if ``metric`` is true, by the latest
    point of the metric ``key``."""

    key: str
    ascending: bool
    metric: bool = False
    dataset_name: str | None = None
    dataset_digest: str | None = None


class ModelsByName(NamedTuple):
    """An access path of a search: the logged models with this name."""

    name: str


class ModelsByRun(NamedTuple):
    """An access path of a search for logged models: reads those that the run ``run_id`` made."""

    run_id: str


class ModelIds(NamedTuple):
    """An access path of a search: the logged models with these ids."""

    model_ids: tuple[str, ...]


Access = ModelsByName | ModelsByRun | ModelIds


def parse_filter(text: str) -> tuple[ModelComparison, ...]:
    """Parses a filter of logged models to comparisons (ANDed). Raises InvalidParameterValue."""
    if not text:
        return ()
    t.check_length(text)
    tokens = t.tokenize(text)
    items = ClauseReader(text, tokens).items() if len(tokens) <= t.MAX_TOKENS else []
    if not items or any(item.text == ";" for item in items[:-1]):
        raise InvalidParameterValue(
            f"Invalid filter string: {text!r}. Expected a single SQL expression."
        )
    comparisons = [_comparison(text, item) for item in parse_clauses(text, tokens)]
    return tuple(map(_with_status_codes, comparisons))


def parse_order(field_name: str, ascending: bool, dataset: MetricDataset) -> ModelOrderBy:
    """Parses one entry of ``order_by``: a field of logged models, or ``metrics.<key>`` with the
    dataset that restricts the points. Raises InvalidParameterValue for a malformed entry,
    AttributeNotFound for an unknown field."""
    kind, dot, key = field_name.partition(".")
    if not dot:
        column = _ALIASES.get(field_name, field_name)
        if column not in _COLUMNS:
            raise AttributeNotFound(f"Invalid order by field name: {field_name}")
        return ModelOrderBy(column, ascending)
    if kind != METRICS:
        raise InvalidParameterValue(
            f"Invalid order by field name: {field_name}. Only metrics are supported."
        )
    return ModelOrderBy(key, ascending, True, dataset.name or None, dataset.digest)


def access(comparisons: Sequence[ModelComparison]) -> Access | None:
    """Returns an access path (a set of logged models that can be listed) that contains every match
    of the comparisons: by ids, else by run, else by name; None if all models must be read."""
    accesses: dict[type, Access] = {}
    for kind, key, sign, value in comparisons:
        if kind != ATTRIBUTES or sign not in ("=", "IN"):
            continue
        if key == "model_id":
            accesses[ModelIds] = ModelIds(value if isinstance(value, tuple) else (str(value),))
        elif sign == "=" and key == "source_run_id" and value:
            accesses[ModelsByRun] = ModelsByRun(str(value))
        elif sign == "=" and key == "name":
            accesses[ModelsByName] = ModelsByName(str(value))
    return accesses.get(ModelIds) or accesses.get(ModelsByRun) or accesses.get(ModelsByName)


def predicate(comparisons: Sequence[ModelComparison], datasets: Sequence[MetricDataset]) -> Test:
    """Compiles comparisons to a function that says whether a logged model meets all of them.

    With ``datasets``, comparisons of metrics use only points of one of these datasets, and a filter
    without a comparison of a metric requires that the model has such a point.
    """
    counts = _dataset_test(datasets)
    of_metrics = [comparison for comparison in comparisons if comparison.kind == METRICS]
    tests = [_test(comparison) for comparison in comparisons if comparison.kind != METRICS]
    if of_metrics:
        tests.append(_metrics_test(of_metrics, counts))
    elif datasets:
        tests.append(lambda model: any(map(counts, model.metrics)))
    return lambda model: all(test(model) for test in tests)


def _dataset_test(datasets: Sequence[MetricDataset]) -> Test:
    """Returns a test whether a metric point belongs to one of the datasets, if there are any."""
    if not datasets:
        return lambda _point: True
    known = {(name, digest) for name, digest in datasets if digest is not None}
    return lambda point: (point.dataset_name, point.dataset_digest) in known


def newest_first(ordering: Sequence[ModelOrderBy]) -> bool:
    """Returns whether logged models have the default order: latest creation first, then by id."""
    return not ordering or list(ordering) == [ModelOrderBy("creation_timestamp_ms", False)]


def reads_points(
    comparisons: Sequence[ModelComparison],
    datasets: Sequence[MetricDataset],
    ordering: Sequence[ModelOrderBy],
) -> bool:
    """Whether the filter, datasets or order of a search need the logged models' metric points."""
    return (
        bool(datasets)
        or any(comparison.kind == METRICS for comparison in comparisons)
        or any(order.metric for order in ordering)
    )


def sort_key(
    ordering: Sequence[ModelOrderBy], datasets: Sequence[MetricDataset] = ()
) -> Callable[[LoggedModel], Key]:
    """Returns a function that makes the sort key of a logged model, for the requested order
    followed by the default one. Missing values sort last; no two models have equal keys.

    Keys are described in :mod:`mlcore.search.sort_keys`. With ``datasets``, only metric points of
    these datasets are used.
    """
    total = _total(ordering)
    counts = _dataset_test(datasets)

    def key(model: LoggedModel) -> Key:
        elements: list[str | int | float] = []
        for order in total:
            elements += value_field(_value(model, order, counts), ascending=order.ascending)
        return tuple(elements)

    return key


def _value(model: LoggedModel, order: ModelOrderBy, counts: Test) -> Any:
    if order.metric:
        return _ordered_value(model, order, counts)
    column = _COLUMNS[order.key](model)
    return sortable_experiment_id(column) if order.key == "experiment_id" else column


def restore_key(values: object, ordering: Sequence[ModelOrderBy]) -> Key:
    """Checks that a page token's values are a logged model's sort key in this search order, and
    returns the key. Raises InvalidParameterValue otherwise."""
    total = _total(ordering)
    if not isinstance(values, list) or len(values) != 2 * len(total):
        raise InvalidParameterValue("Invalid page token")
    for order, rank, value in zip(total, values[::2], values[1::2], strict=True):
        if rank == MISSING or order.metric:
            fits = isinstance(value, int | float)
        elif order.key in (*_TIMES, "status"):
            fits = isinstance(value, int) and abs(value) < 2**63
        else:
            fits = isinstance(value, str)
        if rank not in (PRESENT, MISSING) or not fits or not paging.is_scalar(value):
            raise InvalidParameterValue("Invalid page token")
    return tuple(values)


def _total(ordering: Sequence[ModelOrderBy]) -> list[ModelOrderBy]:
    named = {order.key for order in ordering if not order.metric}
    tie_break = (ModelOrderBy("creation_timestamp_ms", False), ModelOrderBy("model_id", True))
    return [*ordering, *(order for order in tie_break if order.key not in named)]


def _ordered_value(model: LoggedModel, order: ModelOrderBy, counts: Test) -> float | None:
    points = [
        point
        for point in model.metrics
        if point.key == order.key
        and order.dataset_name in (None, point.dataset_name)
        and order.dataset_digest in (None, point.dataset_digest)
        and counts(point)
    ]
    return max(points, key=_recency).value if points else None


def _recency(point: ModelMetric) -> tuple[int, int, bool, float]:
    is_number = not math.isnan(point.value)
    return point.step, point.timestamp, is_number, point.value if is_number else 0


def _comparison(text: str, item: ClauseItem) -> ModelComparison:
    if item.kind == NULL_CHECK:
        shown = item.parts[0].text + item.parts[1].text
        raise InvalidParameterValue(
            f"Invalid comparison: {shown}. Expected a comparison with 3 tokens."
        )
    if item.kind != COMPARISON:
        raise InvalidParameterValue(
            f"Invalid filter string: {text!r}. Expected a list of comparisons separated by 'AND' "
            "(e.g. 'metrics.loss > 0.1 AND params.lr = 0.01')."
        )
    left, sign, right = item.parts
    kind, key = _field(left.text)
    numeric = kind == METRICS or (kind == ATTRIBUTES and _ALIASES.get(key, key) in _TIMES)
    name = sign.text.upper()
    expected = tuple(_NUMERIC) if numeric else _TEXT
    if name not in expected:
        raise InvalidParameterValue(
            f"Invalid comparison operator for {kind}.{key}: {name!r}. Expected one of {expected}."
        )
    value = _number(right.text) if numeric else _text(name, right)
    if kind == ATTRIBUTES:
        key = _ALIASES.get(key, key)
        if key not in _COLUMNS:
            raise InvalidParameterValue(f"Invalid attribute key {key!r} specified.")
    return ModelComparison(kind, key, name, value)


def _with_status_codes(comparison: ModelComparison) -> ModelComparison:
    """Replaces the status names in a comparison of ``status`` by their codes, as texts. Returns all
    other comparisons unchanged."""
    kind, key, sign, value = comparison
    if (kind, key) != (ATTRIBUTES, "status"):
        return comparison
    if sign not in ("=", "!=", "IN", "NOT IN"):
        raise InvalidParameterValue(f"Invalid comparison operator for status: {sign}")
    names = value if isinstance(value, tuple) else (value,)
    if not _STATUS_NAMES.keys() >= set(names):
        raise InvalidParameterValue(f"Unknown model status in filter: {value!r}")
    codes = tuple(str(_STATUS_NAMES[str(name)]) for name in names)
    return comparison._replace(value=codes if isinstance(value, tuple) else codes[0])


def _field(text: str) -> tuple[str, str]:
    match = _FIELD.match(text)
    if match is None:
        return ATTRIBUTES, _ALIASES.get(text, text).strip("`")
    if match[1] not in _KINDS:
        raise InvalidParameterValue(f"Invalid entity type: {match[1]!r}. Expected one of {_KINDS}.")
    return match[1], match[2].strip("`")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameterValue(f"Expected a number, got {text}.") from None


def _text(sign: str, right: ClauseItem) -> Value:
    if right.kind != PARENTHESIS:
        if sign in ("IN", "NOT IN"):
            raise InvalidParameterValue(f"Expected a list of values, got {right.text}.")
        return right.text.strip("'")
    try:
        literal = ast.literal_eval(right.text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise InvalidParameterValue(f"Expected a list of values, got {right.text}.") from None
    values = literal if isinstance(literal, tuple) else (literal,)
    if sign not in ("IN", "NOT IN") or not all(isinstance(value, str | int) for value in values):
        raise BadRequest(f"Invalid value of the operator {sign}: {right.text}.")
    if not isinstance(literal, tuple | str):
        raise BadRequest(f"Expected a list of values, got {right.text}.")
    return tuple(str(value) for value in values)


def _metrics_test(comparisons: Sequence[ModelComparison], counts: Test) -> Test:
    """Returns a test whether the latest points of a model's metrics meet all comparisons."""
    if any(value != value for *_, value in comparisons):  # noqa: PLR0124 - in SQL, NaN meets none
        return lambda _model: False
    tests = [(each.key, _NUMERIC[each.operator], each.value) for each in comparisons]
    keys = {key for key, *_ in tests}

    def holds(model: LoggedModel) -> bool:
        latest: dict[str, ModelMetric] = {}
        for point in model.metrics:
            if point.key in keys and counts(point):
                latest[point.key] = max(latest.get(point.key, point), point, key=_recency)
        return all(key in latest and meets(latest[key].value, value) for key, meets, value in tests)

    return holds


def _test(comparison: ModelComparison) -> Test:
    (kind, key, _sign, value), holds = comparison, _value_test(comparison)
    if kind == ATTRIBUTES:
        column = _COLUMNS[key]
        if key in _TIMES:
            return lambda model: value == value and holds(column(model))  # noqa: PLR0124 - NaN
        return lambda model: (field := column(model)) is not None and holds(str(field))
    entries = operator.attrgetter(kind)
    return lambda model: (text := entries(model).get(key)) is not None and holds(text)


def _value_test(comparison: ModelComparison) -> Test:
    value, sign = comparison.value, comparison.operator
    if sign == "LIKE":
        return like(str(value))
    if sign == "ILIKE":
        return ilike(str(value))
    if isinstance(value, tuple):
        members = frozenset(value)
        return members.__contains__ if sign == "IN" else lambda text: text not in members
    compare = _NUMERIC[sign]
    return lambda field: compare(field, value)
