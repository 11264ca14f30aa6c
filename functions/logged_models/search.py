"""Searches logged models: parses the filter and the order, and builds the page and its token."""

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
from mlcore.search.grammar import check_ordering_count
from mlcore.search.logged_models import MetricDataset, ModelOrderBy
from mlcore.search.sort_keys import Key
from mlcore.wire.json_text import load_json

RESULTS_FOR_ZERO = 100
"""The page size for ``max_results=0``. A request without ``max_results`` gets 50."""

Json = dict[str, Any]


def search_logged_models(message: m.SearchLoggedModels, request: Request) -> Json:
    """Returns a page of matching logged models. Takes one round trip for the newest models of one
    experiment."""
    datasets = [MetricDataset(d.dataset_name, d.dataset_digest or None) for d in message.datasets]
    if not all(dataset.name for dataset in datasets):
        raise InvalidParameterValue("`dataset_name` in the `datasets` clause must be specified.")
    wanted = message.experiment_ids
    limit = _limit(message.max_results)
    check_ordering_count(message.order_by)
    tokens = _QueryTokens(wanted, message.filter or None, _order_by(message) or None)
    position = tokens.position_of(message.page_token) if message.page_token else None
    comparisons = language.parse_filter(message.filter)
    ordering = [_order(order) for order in message.order_by]
    after = None if position is None else language.restore_key(position, ordering)

    readable = request.may_read(LOGGED_MODEL)

    rows = logged_model_search.find(
        [experiment_id for experiment_id in canonical_ids(wanted) if readable(experiment_id)],
        request.workspace,
        logged_model_search.LoggedModelQuery(comparisons, datasets, ordering, after, limit + 1),
    )
    page = paging.fitting([model for _, model in rows[:limit]], _weight)
    answer: Json = {}
    if page:
        answer["models"] = [responses.logged_model(model) for model in page]
    if len(page) < len(rows):
        answer["next_page_token"] = tokens.token(rows[len(page) - 1][0])
    return answer


class _QueryTokens:
    """Page tokens of one query. They contain the query, because MLflow's error messages name the
    part that does not match."""

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
        """Returns the position in a token. Raises InvalidParameterValue if it is malformed or
        belongs to another query."""
        try:
            content = load_json(base64.b64decode(token.encode()))
        except (binascii.Error, ValueError) as error:
            raise InvalidParameterValue(f"Invalid page token: {token}. {error}") from error
        if not isinstance(content, dict):
            raise InvalidParameterValue(f"Invalid page token: {token}.")
        for name, message in (
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
            if content.get(name) != expected:
                raise InvalidParameterValue(
                    f"{message} Expected: {expected}. Found: {content.get(name)}"
                )
        return content.get("after")


def _limit(max_results: int) -> int:
    if max_results < 0:
        raise InvalidParameterValue(
            f"Invalid value {max_results} for parameter 'max_results' supplied. "
            "It must be a positive integer"
        )
    return max_results or RESULTS_FOR_ZERO


def _order(order: m.OrderBy) -> ModelOrderBy:
    dataset = MetricDataset(order.dataset_name, order.dataset_digest or None)
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
    points = responses.latest_points(model.metrics)
    texts += [point.key for point in points]
    texts += [point.dataset_name for point in points if point.dataset_name]
    return (
        700
        + 30 * len(texts)
        + 250 * len(points)
        + paging.weight_of([model.name, model.model_type, model.artifact_location, *texts])
    )
