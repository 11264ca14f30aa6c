"""The rules of searching logged models: filter, order, pages."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from logged_models import messages as m
from mlcore import paging
from mlcore.auth.permissions import LOGGED_MODEL
from mlcore.entities.logged_models import LoggedModel
from mlcore.errors import InvalidParameterValue
from mlcore.http import Request
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.logged_models import search as logged_model_search
from mlcore.responses import logged_models as responses
from mlcore.search import logged_models as language
from mlcore.search.logged_models import Dataset, OrderBy
from mlcore.search.order import Key

DEFAULT_RESULTS = 100
"""For 0; a request without max_results means 50."""

Json = dict[str, Any]


def search_logged_models(message: m.SearchLoggedModels, request: Request) -> Json:
    """One round trip for the newest models of an experiment."""
    datasets = [Dataset(d.dataset_name, d.dataset_digest or None) for d in message.datasets]
    if not all(dataset.name for dataset in datasets):
        raise InvalidParameterValue("`dataset_name` in the `datasets` clause must be specified.")
    wanted = message.experiment_ids
    limit = _limit(message.max_results)
    bound = _Bound(wanted, message.filter or None, _order_by(message) or None)
    position = bound.position_of(message.page_token) if message.page_token else None
    comparisons = language.parse_filter(message.filter)
    ordering = [_order(order) for order in message.order_by]
    after = None if position is None else language.restore_key(position, ordering)

    readable = request.may_read(LOGGED_MODEL)

    rows = logged_model_search.find(
        [one for one in canonical_ids(wanted) if readable(one)],
        request.workspace,
        logged_model_search.Query(comparisons, datasets, ordering, after, limit + 1),
    )
    page = paging.fitting([model for _, model in rows[:limit]], _weight)
    answer: Json = {}
    if page:
        answer["models"] = [responses.logged_model(model) for model in page]
    if len(page) < len(rows):
        answer["next_page_token"] = bound.token(rows[len(page) - 1][0])
    return answer


class _Bound:
    """Page tokens of one query: they hold it, since MLflow says what does not match."""

    def __init__(
        self, experiment_ids: list[str], filter_string: str | None, order_by: list[Json] | None
    ) -> None:
        self._query = {
            "experiment_ids": experiment_ids,
            "filter_string": filter_string,
            "order_by": order_by,
        }

    def token(self, position: Key) -> str:
        content = json.dumps({**self._query, "after": position}, separators=(",", ":"))
        return base64.b64encode(content.encode()).decode()

    def position_of(self, token: str) -> object:
        """Raises InvalidParameterValue: it is no token, or one of another query."""
        try:
            found = json.loads(base64.b64decode(token.encode()))
        except (binascii.Error, ValueError, RecursionError) as error:
            raise InvalidParameterValue(f"Invalid page token: {token}. {error}") from error
        if not isinstance(found, dict):
            raise InvalidParameterValue(f"Invalid page token: {token}.")
        for name, what in (
            (
                "experiment_ids",
                "Experiment IDs in the page token do not match the requested experiment IDs.",
            ),
            (
                "filter_string",
                "Filter string in the page token does not match the requested filter string.",
            ),
            ("order_by", "Order by in the page token does not match the requested order by."),
        ):
            expected = self._query[name]
            if found.get(name) != expected:
                raise InvalidParameterValue(
                    f"{what} Expected: {expected}. Found: {found.get(name)}"
                )
        return found.get("after")


def _limit(max_results: int) -> int:
    if max_results < 0:
        raise InvalidParameterValue(
            f"Invalid value {max_results} for parameter 'max_results' supplied. "
            "It must be a positive integer"
        )
    return max_results or DEFAULT_RESULTS


def _order(order: m.OrderBy) -> OrderBy:
    dataset = Dataset(order.dataset_name, order.dataset_digest or None)
    return language.parse_order(order.field_name, order.ascending, dataset)


def _order_by(message: m.SearchLoggedModels) -> list[Json]:
    return [
        {
            "field_name": order.field_name,
            "ascending": order.ascending,
            "dataset_name": order.dataset_name or None,
            "dataset_digest": order.dataset_digest or None,
        }
        for order in message.order_by
    ]


def _weight(model: LoggedModel) -> int:
    texts = [*model.params, *model.params.values(), *model.tags, *model.tags.values()]
    points = responses.shown(model.metrics)
    texts += [point.key for point in points]
    texts += [point.dataset_name for point in points if point.dataset_name]
    return (
        700
        + 30 * len(texts)
        + 250 * len(points)
        + paging.weight_of([model.name, model.model_type, model.artifact_location, *texts])
    )
