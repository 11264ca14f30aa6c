"""The rules of scorers: a name in an experiment has versions, and may judge new traces itself."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from evaluation import judges, parents
from evaluation import messages as m
from mlcore import errors, ids
from mlcore.auth.permissions import EXPERIMENT, SCORER, scorer_pattern
from mlcore.entities.evaluation.judges import EXPECTATIONS
from mlcore.entities.evaluation.online_scorers import OnlineScorer
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.experiments import Experiment
from mlcore.entities.stages import ACTIVE
from mlcore.http import Request
from mlcore.limits.evaluation import judges as judge_limits
from mlcore.limits.evaluation.scorers import check_name, check_payload
from mlcore.repos.evaluation import online_scorers, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.responses.evaluation import scorers as responses
from mlcore.search import trace_filter
from mlcore.search.order import identifier
from mlcore.settle import settle


def register_scorer(message: m.RegisterScorer, request: Request) -> dict[str, Any]:
    """The next version of the name; all versions of a name have one scorer id."""
    data = check_payload(message.serialized_scorer)
    check_name(message.name)
    experiment = parents.active(message.experiment_id, request)
    judge = judges.judge(message.serialized_scorer, data, request.workspace)

    def attempt() -> ScorerVersion:
        before = scorers.latest(experiment, message.name)
        version = ScorerVersion(
            experiment_id=experiment.experiment_id,
            name=message.name,
            version=1 if before is None else before.version + 1,
            scorer_id=str(uuid4()) if before is None else before.scorer_id,
            serialized_scorer=judge.serialized_scorer,
            creation_time=ids.now_ms(),
        )
        scorers.create(version)
        return version

    version = settle("scorer", attempt)
    if judge.endpoint_id is not None:
        judges.bind(version, judge.endpoint_id, request.workspace)
    (version,) = judges.shown([version], request.workspace)
    return {
        "version": version.version,
        "scorer_id": version.scorer_id,
        "experiment_id": experiment.experiment_id,
        "name": version.name,
        "serialized_scorer": version.serialized_scorer,
        "creation_time": version.creation_time,
    }


def list_scorers(message: m.ListScorers, request: Request) -> dict[str, Any]:
    """The latest version of each, by experiment and name; of one experiment, of several, or of all
    in the workspace."""
    if message.experiment_id and message.has("experiment_ids"):
        raise errors.InvalidParameterValue(
            "Cannot specify both 'experiment_id' and 'experiment_ids'. Use "
            "'experiment_ids' to scope the query to multiple experiments, or "
            "'experiment_id' to scope it to a single experiment."
        )
    if message.has("experiment_ids"):
        listed = _active(canonical_ids(message.experiment_ids), request)
    elif message.experiment_id:
        listed = [parents.active(message.experiment_id, request)]
    else:
        listed = _active(list(experiments.ids_of_workspace(request.workspace)), request)
    readable, named = request.may_read(EXPERIMENT), request.may_read(SCORER)
    found = [
        version
        for experiment in sorted(listed, key=lambda one: identifier(one.experiment_id))
        if readable(experiment.experiment_id)
        for version in scorers.latest_of_experiment(experiment)
        if named(scorer_pattern(experiment.experiment_id, version.name))
    ]
    shown = [responses.scorer(version) for version in judges.shown(found, request.workspace)]
    return {"scorers": shown} if shown else {}


def list_versions(message: m.ListScorerVersions, request: Request) -> dict[str, Any]:
    experiment = parents.active(message.experiment_id, request)
    found = scorers.versions(experiment, message.name)
    if not found:
        raise _missing(message.name, message.experiment_id)
    shown = judges.shown(found, request.workspace)
    return {"scorers": [responses.scorer(version) for version in shown]}


def get_scorer(message: m.GetScorer, request: Request) -> dict[str, Any]:
    experiment = parents.active(message.experiment_id, request)
    if message.has("version"):
        found = scorers.find(experiment, message.name, message.version)
        if found is None:
            known = scorers.latest(experiment, message.name) is not None
            version = message.version if known else None
            raise _missing(message.name, message.experiment_id, version)
    else:
        found = scorers.latest(experiment, message.name)
        if found is None:
            raise _missing(message.name, message.experiment_id)
    (named,) = judges.shown([found], request.workspace)
    return {"scorer": responses.scorer(named)}


def delete_scorer(message: m.DeleteScorer, request: Request) -> dict[str, Any]:
    """One version, or all of them."""
    experiment = parents.active(message.experiment_id, request)
    found = scorers.versions(experiment, message.name)
    if not found:
        raise _missing(message.name, message.experiment_id)
    if not message.has("version"):
        if any(map(judges.asks_endpoint, found)):
            judges.bind(found[-1], None, request.workspace)
        online_scorers.delete(request.workspace, experiment.experiment_id, message.name)
        scorers.delete_all(experiment, message.name, found[-1].scorer_id)
    elif not scorers.delete(experiment, message.name, message.version):
        raise _missing(message.name, message.experiment_id, message.version)
    return {}


def get_online_configs(message: m.GetOnlineScoringConfigs, request: Request) -> dict[str, Any]:
    """Of those scorers that the caller may read."""
    named = request.may_read(SCORER)
    found = online_scorers.with_ids(request.workspace, set(message.scorer_ids))
    readable = [one for one in found if named(scorer_pattern(one.experiment_id, one.name))]
    return {"configs": [responses.online_config(config) for config in readable]}


def set_online_config(message: m.SetOnlineScoringConfig, request: Request) -> dict[str, Any]:
    """Replaces what the scorer had. It judges traces from now on, not those before."""
    try:
        rate = float(message.sample_rate)
    except (TypeError, ValueError):
        raise errors.InvalidParameterValue(
            f"sample_rate must be a number, got {type(message.sample_rate).__name__}"
        ) from None
    if not 0.0 <= rate <= 1.0:
        raise errors.InvalidParameterValue(f"sample_rate must be between 0.0 and 1.0, got {rate}")
    if message.filter_string:
        trace_filter.parse_filter(message.filter_string)
    experiment = parents.active(message.experiment_id, request)
    latest = scorers.latest(experiment, message.name)
    if latest is None:
        raise _missing(message.name, message.experiment_id)
    if rate > 0:
        _check_online(latest)
    before = online_scorers.find(request.workspace, experiment.experiment_id, message.name)
    was_on = before is not None and before.sample_rate > 0
    config = OnlineScorer(
        config_id=uuid4().hex,
        workspace=request.workspace,
        experiment_id=experiment.experiment_id,
        name=message.name,
        scorer_id=latest.scorer_id,
        sample_rate=rate,
        filter_string=message.filter_string or None,
        since=before.since if before is not None and was_on else ids.now_ms(),
    )
    if before is not None and before == config._replace(
        config_id=before.config_id, since=before.since
    ):
        return {"config": responses.online_config(before)}  # this very request had come before
    online_scorers.put(config)
    return {"config": responses.online_config(config)}


def _check_online(version: ScorerVersion) -> None:
    """Refuses a scorer that cannot judge by itself. As on MLflow's server, one whose JSON text is
    no complete judge is taken: it has no name, for example. The sweep logs it and passes it over.

    Raises:
        InvalidParameterValue: it asks no endpoint of the gateway, or needs expectations.
        NotRunHere: only a client can run it.
    """
    if not judges.asks_endpoint(version):
        raise errors.InvalidParameterValue(
            f"Scorer '{version.name}' does not use a gateway model. "
            "Automatic evaluation is only supported for scorers that use "
            "gateway models."
        )
    try:
        found = judge_limits.judge(json.loads(version.serialized_scorer))
    except judge_limits.NotRunHere:
        raise
    except errors.InvalidParameterValue:
        return
    if EXPECTATIONS in found.variables:
        raise errors.InvalidParameterValue(
            f"Scorer '{version.name}' requires expectations, but scorers with "
            "expectations are not currently supported for automatic evaluation."
        )


def _active(experiment_ids: list[str], request: Request) -> list[Experiment]:
    known = experiments.known(experiment_ids, request.workspace)
    return [experiment for experiment in known if experiment.lifecycle_stage == ACTIVE]


def _missing(
    name: str, experiment_id: str, version: int | None = None
) -> errors.ResourceDoesNotExist:
    of_version = "" if version is None else f" and version {version}"
    return errors.ResourceDoesNotExist(
        f"Scorer with name '{name}'{of_version} not found for experiment {experiment_id}."
    )
