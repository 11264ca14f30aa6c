"""What the fields of GraphQL's queries hold: the same reads as REST, in the same JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphql import GraphQLResolveInfo

from mlcore import errors
from mlcore.auth.permissions import PROMPT_VERSION, REGISTERED_MODEL_VERSION, RUN
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.queries import artifacts, datasets, metrics, model_versions
from mlcore.queries import runs as run_queries
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import runs
from mlcore.responses import experiments as experiment_responses
from mlcore.responses import runs as run_responses
from ui import rights

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
    if not rights.may_read_experiment(_request(info), text):
        return None
    return {"experiment": _experiment(text, info)}


def get_run(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json | None:
    fields = _fields(input)
    run_id = fields.get("runId") or fields.get("runUuid") or ""
    if not rights.may_read_runs(_request(info), [run_id]):
        return None
    stored = runs.load(run_id, _request(info).workspace)
    run = run_responses.run(runs.entity(stored))
    rights.hide_in_runs(_request(info), [run])
    return {"run": {**run, "experiment": experiment_responses.experiment(stored.experiment)}}


def search_runs(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json:
    fields = _fields(input)
    limit = fields.get("maxResults")
    found = run_queries.search(
        _request(info).workspace,
        _texts(fields.get("experimentIds")),
        fields.get("filter") or "",
        fields.get("runViewType") or "ACTIVE_ONLY",
        MAX_SEARCH_RESULTS if limit is None else limit,
        _texts(fields.get("orderBy")),
        fields.get("pageToken") or "",
        _request(info).may_read(RUN),
    )
    rights.hide_in_runs(_request(info), found.get("runs", ()))
    return found


def get_metric_history_bulk_interval(
    _root: None,
    info: GraphQLResolveInfo,
    input: Input = None,
) -> Json | None:
    fields = _fields(input)
    run_ids = _texts(fields.get("runIds"))
    if not rights.may_read_runs(_request(info), run_ids):
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
    found = metrics.history_interval(_request(info).workspace, run_ids, key, low, high, limit)
    sampled = [
        run_responses.metric_of_run(point, run_id)
        for run_id, columns in found
        for point in columns.points(key)
    ]
    return {"metrics": sampled} if sampled else {}


def search_datasets(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json:
    texts = _texts(_fields(input).get("experimentIds"))
    return datasets.search(_request(info).workspace, texts, _request(info).may_read(RUN))


def list_artifacts(_root: None, info: GraphQLResolveInfo, input: Input = None) -> Json | None:
    fields = _fields(input)
    run_id = fields.get("runId") or fields.get("runUuid") or ""
    if not rights.may_read_runs(_request(info), [run_id]):
        return None
    return artifacts.of_run(run_id, fields.get("path") or "", _request(info).workspace)


def search_model_versions(
    _root: None,
    info: GraphQLResolveInfo,
    input: Input = None,
) -> Json | None:
    fields = _fields(input)
    if not rights.may_find_by_run(_request(info), fields.get("filter") or ""):
        return None
    limit = fields.get("maxResults")
    return _model_versions(
        info,
        fields.get("filter") or "",
        model_versions.MOST_RESULTS if limit is None else limit,
        _texts(fields.get("orderBy")),
        fields.get("pageToken") or "",
    )


def experiment_of_run(run: Json, info: GraphQLResolveInfo) -> Json:
    """Read with the run where there is one run."""
    found: Json | None = run.get("experiment")
    return found or _experiment(run["info"]["experiment_id"], info)


def model_versions_of_run(run: Json, info: GraphQLResolveInfo) -> list[Json]:
    """The first page; MLflow's server has no other either."""
    run_id = run["info"]["run_id"]
    found = _model_versions(info, f"run_id='{run_id}'", model_versions.MOST_RESULTS, (), "")
    versions: list[Json] = found.get("model_versions", [])
    return versions


def _model_versions(
    info: GraphQLResolveInfo,
    filter_string: str,
    limit: int,
    order_by: Sequence[str],
    page_token: str,
) -> Json:
    workspace = _request(info).workspace
    models = _request(info).may_read(REGISTERED_MODEL_VERSION)
    prompts = _request(info).may_read(PROMPT_VERSION)
    found = model_versions.search(
        workspace,
        filter_string,
        limit,
        order_by,
        page_token,
        lambda name, is_prompt: (prompts if is_prompt else models)(name),
    )
    rights.hide_in_versions(_request(info), found.get("model_versions", ()))
    return found


def _experiment(text: str, info: GraphQLResolveInfo) -> Json:
    found = experiments.get(experiment_id(text), _request(info).workspace)
    return experiment_responses.experiment(found.experiment)


def _fields(value: Input) -> Mapping[str, Any]:
    if value is None:
        raise errors.InvalidParameterValue("Missing value for required parameter 'input'.")
    return value


def _texts(values: list[str | None] | None) -> list[str]:
    return [value for value in values or () if value is not None]


def _request(info: GraphQLResolveInfo) -> Request:
    request: Request = info.context
    return request
