"""Filters and orders of logged models: their own dialect of the filter language, what it means, and
which index leads to a filter's matches; never reads storage.

MLflow has a parser for logged models alone: values need no quotes, the kinds are ``attributes``,
``metrics``, ``params`` and ``tags``, a metric matches by any of its points, and fields are the
columns of its table. The texts of refusals are MLflow's.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mlcore import paging
from mlcore.entities.logged_models import LoggedModel, ModelMetric
from mlcore.errors import AttributeNotFound, BadRequest, InvalidParameterValue
from mlcore.search import tokens as t
from mlcore.search.clauses import COMPARISON, NULL_CHECK, PARENTHESIS, Item, Reader, clauses_of
from mlcore.search.like import ilike, like
from mlcore.search.order import MISSING, PRESENT, Key, identifier, value_field

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


class Comparison(NamedTuple):
    kind: str
    key: str
    operator: str
    value: Value


class Dataset(NamedTuple):
    """What a point's dataset must be; no digest is none, as on MLflow's server."""

    name: str
    digest: str | None


class OrderBy(NamedTuple):
    """``key`` is a column, or (``metric``) a metric, whose latest point counts."""

    key: str
    ascending: bool
    metric: bool = False
    dataset_name: str | None = None
    dataset_digest: str | None = None


class Named(NamedTuple):
    """The models with a name."""

    name: str


class MadeBy(NamedTuple):
    """The models that a run made."""

    run_id: str


class Ids(NamedTuple):
    """Some of these models."""

    model_ids: tuple[str, ...]


Access = Named | MadeBy | Ids


def parse_filter(text: str) -> tuple[Comparison, ...]:
    """The comparisons of a filter, all of which must hold. Raises InvalidParameterValue."""
    if not text:
        return ()
    t.check_length(text)
    tokens = t.tokenize(text)
    items = Reader(text, tokens).items() if len(tokens) <= t.MAX_TOKENS else []
    if not items or any(item.text == ";" for item in items[:-1]):
        raise InvalidParameterValue(
            f"Invalid filter string: {text!r}. Expected a single SQL expression."
        )
    return tuple(_comparison(text, item) for item in clauses_of(text, tokens))


def parse_order(field_name: str, ascending: bool, dataset: Dataset) -> OrderBy:
    """Raises InvalidParameterValue."""
    kind, dot, key = field_name.partition(".")
    if not dot:
        column = _ALIASES.get(field_name, field_name)
        if column not in _COLUMNS:
            raise AttributeNotFound(f"Invalid order by field name: {field_name}")
        return OrderBy(column, ascending)
    if kind != METRICS:
        raise InvalidParameterValue(
            f"Invalid order by field name: {field_name}. Only metrics are supported."
        )
    return OrderBy(key, ascending, True, dataset.name or None, dataset.digest)


def access(comparisons: Sequence[Comparison]) -> Access | None:
    """The narrowest index that holds every match; None for all models."""
    found: dict[type, Access] = {}
    for kind, key, sign, value in comparisons:
        if kind != ATTRIBUTES or sign not in ("=", "IN"):
            continue
        if key == "model_id":
            found[Ids] = Ids(value if isinstance(value, tuple) else (str(value),))
        elif sign == "=" and key == "source_run_id" and value:
            found[MadeBy] = MadeBy(str(value))
        elif sign == "=" and key == "name":
            found[Named] = Named(str(value))
    return found.get(Ids) or found.get(MadeBy) or found.get(Named)


def predicate(comparisons: Sequence[Comparison], datasets: Sequence[Dataset]) -> Test:
    """A test of a model: all comparisons hold. With datasets, those of metrics look at points of
    one of them only, and if there are none the model must have such a point."""

    def counts(point: ModelMetric) -> bool:
        return not datasets or any(
            point.dataset_name == name and digest is not None and point.dataset_digest == digest
            for name, digest in datasets
        )

    tests = [_test(comparison, counts) for comparison in comparisons]
    if datasets and not any(comparison.kind == METRICS for comparison in comparisons):
        tests.append(lambda model: any(map(counts, model.metrics)))
    return lambda model: all(test(model) for test in tests)


def newest_first(ordering: Sequence[OrderBy]) -> bool:
    """Whether the order is that of creation, latest first, then the id: the default order."""
    return not ordering or list(ordering) == [OrderBy("creation_timestamp_ms", False)]


def reads_points(
    comparisons: Sequence[Comparison], datasets: Sequence[Dataset], ordering: Sequence[OrderBy]
) -> bool:
    """Whether matching or ordering looks at metrics."""
    return (
        bool(datasets)
        or any(comparison.kind == METRICS for comparison in comparisons)
        or any(order.metric for order in ordering)
    )


def sort_key(ordering: Sequence[OrderBy]) -> Callable[[LoggedModel], Key]:
    """A total order, as in :mod:`mlcore.search.order`: what is missing comes last."""
    total = _total(ordering)

    def key(model: LoggedModel) -> Key:
        elements: list[str | int | float] = []
        for order in total:
            elements += value_field(_value(model, order), ascending=order.ascending)
        return tuple(elements)

    return key


def _value(model: LoggedModel, order: OrderBy) -> Any:
    if order.metric:
        return _latest(model, order)
    found = _COLUMNS[order.key](model)
    return identifier(found) if order.key == "experiment_id" else found


def restore_key(values: object, ordering: Sequence[OrderBy]) -> Key:
    """A key that came back in a page token; one of another order, or a forged one, is refused."""
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


def _total(ordering: Sequence[OrderBy]) -> list[OrderBy]:
    named = {order.key for order in ordering if not order.metric}
    tie_break = (OrderBy("creation_timestamp_ms", False), OrderBy("model_id", True))
    return [*ordering, *(order for order in tie_break if order.key not in named)]


def _latest(model: LoggedModel, order: OrderBy) -> float | None:
    points = [
        point
        for point in model.metrics
        if point.key == order.key
        and order.dataset_name in (None, point.dataset_name)
        and order.dataset_digest in (None, point.dataset_digest)
    ]
    if not points:
        return None
    return min(points, key=lambda p: (-p.timestamp, -p.step, p.run_id)).value


def _comparison(text: str, item: Item) -> Comparison:
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
    return Comparison(kind, key, name, value)


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


def _text(sign: str, right: Item) -> Value:
    if right.kind != PARENTHESIS:
        if sign in ("IN", "NOT IN"):
            raise InvalidParameterValue(f"Expected a list of values, got {right.text}.")
        return right.text.strip("'")
    try:
        found = ast.literal_eval(right.text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise InvalidParameterValue(f"Expected a list of values, got {right.text}.") from None
    values = found if isinstance(found, tuple) else (found,)
    if sign not in ("IN", "NOT IN") or not all(isinstance(value, str | int) for value in values):
        raise BadRequest(f"Invalid value of the operator {sign}: {right.text}.")
    if not isinstance(found, tuple | str):
        raise BadRequest(f"Expected a list of values, got {right.text}.")
    return tuple(str(value) for value in values)


def _test(comparison: Comparison, counts: Test) -> Test:
    kind, key, _sign, value = comparison
    if kind == METRICS:
        compare = _NUMERIC[comparison.operator]
        if value != value:  # noqa: PLR0124 - NaN, which SQL has no comparison for
            return lambda _model: False
        return lambda model: any(
            point.key == key and compare(point.value, value) and counts(point)
            for point in model.metrics
        )
    holds = _value_test(comparison)
    if kind == ATTRIBUTES:
        column = _COLUMNS[key]
        if key in _TIMES:
            return lambda model: value == value and holds(column(model))  # noqa: PLR0124 - NaN
        return lambda model: (found := column(model)) is not None and holds(str(found))
    entries = operator.attrgetter(kind)
    return lambda model: (found := entries(model).get(key)) is not None and holds(found)


def _value_test(comparison: Comparison) -> Test:
    value, sign = comparison.value, comparison.operator
    if sign == "LIKE":
        return like(str(value))
    if sign == "ILIKE":
        return ilike(str(value))
    if isinstance(value, tuple):
        members = frozenset(value)
        return members.__contains__ if sign == "IN" else lambda found: found not in members
    compare = _NUMERIC[sign]
    return lambda found: compare(found, value)
