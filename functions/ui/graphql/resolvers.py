"""Resolves the fields of GraphQL queries, with the same reads and the same JSON as REST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphql import GraphQLResolveInfo

from mlcore import errors
from mlcore.auth.permissions import PROMPT_VERSION, REGISTERED_MODEL_VERSION, RUN
from mlcore.entities.experiments import Experiment
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.repos.experiments import experiments
from mlcore.repos.registry import model_version_search
from mlcore.repos.runs.core import artifact_listing, metric_queries, runs
from mlcore.repos.runs.search import dataset_search
from mlcore.repos.runs.search import run_pages as run_queries
from mlcore.repos.workspaces import trace_retention
from mlcore.responses import experiments as experiment_responses
from mlcore.responses import runs as run_responses
from ui.graphql import visibility

Json = dict[str, Any]
Input = Mapping[str, Any] | None

MAX_SEARCH_RESULTS: Final = 1_000
MAX_INTERVAL_RUNS: Final = 100
MAX_SAMPLED_POINTS: Final = 2_500


def echo(_root: None, _info: GraphQLResolveInfo, inputString: str | None = None) -> Json:  # noqa: N803 - GraphQL's name
    return {"output": inputString}


def get_experiment(
    _root: None,
    info: GraphQLResolveInfo,
    input: Input = None,
) -> Json | None:
    text = _fields(input).get("experimentId") or ""
    if not visibility.may_read_experiment(_request(info), text):
        return None
    return {"experiment": _experiment(text, info)}


def get_run(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json | None:
    fields = _fields(input)
    run_id = fields.get("runId") or fields.get("runUuid") or ""
    if not visibility.may_read_runs(_request(info), [run_id]):
        return None
    stored = runs.load(run_id, _request(info).workspace)
    run = run_responses.run(runs.entity(stored))
    visibility.hide_in_runs(_request(info), [run])
    return {"run": {**run, "experiment": _shown(stored.experiment)}}


def search_runs(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json:
    fields = _fields(input)
    limit = fields.get("maxResults")
    answer = run_queries.search(
        _request(info).workspace,
        _texts(fields.get("experimentIds")),
        fields.get("filter") or "",
        fields.get("runViewType") or "ACTIVE_ONLY",
        MAX_SEARCH_RESULTS if limit is None else limit,
        _texts(fields.get("orderBy")),
        fields.get("pageToken") or "",
        _request(info).may_read(RUN),
    )
    visibility.hide_in_runs(_request(info), answer.get("runs", ()))
    return answer


def get_metric_history_bulk_interval(
    _root: None,
    info: GraphQLResolveInfo,
    input: Input = None,
) -> Json | None:
    fields = _fields(input)
    run_ids = _texts(fields.get("runIds"))
    if not visibility.may_read_runs(_request(info), run_ids):
        return None
    if len(run_ids) > MAX_INTERVAL_RUNS:
        raise errors.InvalidParameterValue(
            f"GetMetricHistoryBulkInterval request must specify at most {MAX_INTERVAL_RUNS} "
            f"run_ids. Received {len(run_ids)} run_ids."
        )
    limit = fields.get("maxResults")
    if limit is None:
        limit = MAX_SAMPLED_POINTS
    if not 1 <= limit <= MAX_SAMPLED_POINTS:
        raise errors.InvalidParameterValue(
            f"max_results must be between 1 and {MAX_SAMPLED_POINTS}."
        )
    key = fields.get("metricKey") or ""
    low, high = fields.get("startStep"), fields.get("endStep")
    columns_of_runs = metric_queries.history_interval(
        _request(info).workspace, run_ids, key, low, high, limit
    )
    sampled = [
        run_responses.metric_of_run(point, run_id)
        for run_id, columns in columns_of_runs
        for point in columns.points(key)
    ]
    return {"metrics": sampled} if sampled else {}


def search_datasets(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json:
    texts = _texts(_fields(input).get("experimentIds"))
    return dataset_search.search(_request(info).workspace, texts, _request(info).may_read(RUN))


def list_artifacts(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json | None:
    fields = _fields(input)
    run_id = fields.get("runId") or fields.get("runUuid") or ""
    if not visibility.may_read_runs(_request(info), [run_id]):
        return None
    return artifact_listing.of_run(run_id, fields.get("path") or "", _request(info).workspace)


def search_model_versions(
    _root: None,
    info: GraphQLResolveInfo,
    input: Input = None,
) -> Json | None:
    fields = _fields(input)
    if not visibility.may_find_by_run(_request(info), fields.get("filter") or ""):
        return None
    limit = fields.get("maxResults")
    return _model_versions(
        info,
        fields.get("filter") or "",
        model_version_search.MOST_RESULTS if limit is None else limit,
        _texts(fields.get("orderBy")),
        fields.get("pageToken") or "",
    )


def experiment_of_run(run: Json, info: GraphQLResolveInfo) -> Json:
    """Returns the experiment of a run in a GraphQL query as JSON. If the query asks for a single
    run, its experiment has been read already; for a run of a list it is read here."""
    experiment: Json | None = run.get("experiment")
    return experiment or _experiment(run["info"]["experiment_id"], info)


def model_versions_of_run(run: Json, info: GraphQLResolveInfo) -> list[Json]:
    """Returns the first page of the run's model versions. As on MLflow's server, further pages
    cannot be read."""
    run_id = run["info"]["run_id"]
    page = _model_versions(info, f"run_id='{run_id}'", model_version_search.MOST_RESULTS, (), "")
    versions: list[Json] = page.get("model_versions", [])
    return versions


def _model_versions(
    info: GraphQLResolveInfo,
    filter_string: str,
    limit: int,
    order_by: Sequence[str],
    page_token: str,
) -> Json:
    workspace = _request(info).workspace
    may_read_model = _request(info).may_read(REGISTERED_MODEL_VERSION)
    may_read_prompt = _request(info).may_read(PROMPT_VERSION)
    page = model_version_search.search(
        workspace,
        filter_string,
        limit,
        order_by,
        page_token,
        lambda name, is_prompt: (may_read_prompt if is_prompt else may_read_model)(name),
    )
    visibility.hide_in_versions(_request(info), page.get("model_versions", ()))
    return page


def _experiment(text: str, info: GraphQLResolveInfo) -> Json:
    stored = experiments.get(experiment_id(text), _request(info).workspace)
    return _shown(stored.experiment)


def _shown(experiment: Experiment) -> Json:
    return experiment_responses.experiment(experiment, trace_retention.effective(experiment))


def _fields(value: Input) -> Mapping[str, Any]:
    if value is None:
        raise errors.InvalidParameterValue("Missing value for required parameter 'input'.")
    return value


def _texts(values: list[str | None] | None) -> list[str]:
    return [value for value in values or () if value is not None]


def _request(info: GraphQLResolveInfo) -> Request:
    request: Request = info.context
    return request
