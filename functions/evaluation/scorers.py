"""Registers, lists and deletes scorers, which are versioned by name within an experiment, and
configures online scoring: the automatic judging of new traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

from evaluation import experiment_lookup, gateway_scorers, model_checks
from evaluation import scorer_messages as m
from evaluation.gateway_scorers import StoredScorer
from mlcore import errors, ids
from mlcore.auth.permissions import EXPERIMENT, SCORER, scorer_pattern
from mlcore.db.table import table
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.jobs import NOBODY
from mlcore.entities.evaluation.judges import EXPECTATIONS
from mlcore.entities.evaluation.online_scorers import OnlineScorer
from mlcore.entities.evaluation.scorers import ScorerVersion, seal_of
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.http import Request
from mlcore.limits.evaluation import code_scorers as code_limits
from mlcore.limits.evaluation import judges as judge_limits
from mlcore.limits.evaluation.code_scorers import code_is_allowed
from mlcore.limits.evaluation.judge_endpoints import judge_endpoint
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.limits.evaluation.scorers import check_name, check_payload, check_size
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import online_scorers, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.responses.evaluation import scorers as responses
from mlcore.search import trace_filter
from mlcore.search.sort_keys import sortable_experiment_id


def register_scorer(message: m.RegisterScorer, request: Request) -> dict[str, Any]:
    """Stores the scorer as the next version of its name. All versions of a name share one scorer
    id. The first version takes over the online settings that a scorer of the name has left, and
    their scorer id.

    A scorer that judges automatically does so in its owner's name. So a version with code or, where
    logins are required, another endpoint makes the caller the owner. Raises PermissionDenied if the
    caller may not let it judge automatically.
    """
    check_size(message.serialized_scorer)
    data = check_payload(message.serialized_scorer)
    check_name(message.name)
    experiment = experiment_lookup.get_active(message.experiment_id, request)
    judge = gateway_scorers.to_stored(message.serialized_scorer, data, request.workspace)
    runs_code = code_limits.is_code(data)

    def attempt() -> ScorerVersion:
        before, online = _stored(experiment, message.name)
        holder = before or online
        version = ScorerVersion(
            experiment_id=experiment.experiment_id,
            name=message.name,
            version=1 if before is None else before.version + 1,
            scorer_id=str(uuid4()) if holder is None else holder.scorer_id,
            serialized_scorer=judge.serialized_scorer,
            creation_time=ids.now_ms(),
        )
        beside = _confirmation(message, version, judge, online, request, runs_code=runs_code)
        scorers.create(version, beside)
        return version

    version = retry_on_conflict("scorer", attempt)
    if judge.endpoint_id is not None:
        gateway_scorers.bind_endpoint(version, judge.endpoint_id, request.workspace)
    (version,) = gateway_scorers.with_endpoint_names([version], request.workspace)
    return {
        "version": version.version,
        "scorer_id": version.scorer_id,
        "experiment_id": experiment.experiment_id,
        "name": version.name,
        "serialized_scorer": version.serialized_scorer,
        "creation_time": version.creation_time,
    }


def list_scorers(message: m.ListScorers, request: Request) -> dict[str, Any]:
    """Returns the latest version of each scorer that the caller may read, ordered by experiment and
    name. The request names one experiment, several, or none: then those of all active experiments
    of the workspace are listed."""
    if message.experiment_id and message.has("experiment_ids"):
        raise errors.InvalidParameterValue(
            "Cannot specify both 'experiment_id' and 'experiment_ids'. Use "
            "'experiment_ids' to scope the query to multiple experiments, or "
            "'experiment_id' to scope it to a single experiment."
        )
    if message.has("experiment_ids"):
        listed = _load_active(canonical_ids(message.experiment_ids), request)
    elif message.experiment_id:
        listed = [experiment_lookup.get_active(message.experiment_id, request)]
    else:
        listed = _load_active(list(experiments.ids_of_workspace(request.workspace)), request)
    may_read_experiment = request.may_read(EXPERIMENT)
    may_read_scorer = request.may_read(SCORER)
    versions = [
        version
        for experiment in sorted(
            listed, key=lambda each: sortable_experiment_id(each.experiment_id)
        )
        if may_read_experiment(experiment.experiment_id)
        for version in scorers.latest_of_experiment(experiment)
        if may_read_scorer(scorer_pattern(experiment.experiment_id, version.name))
    ]
    shown = [
        responses.scorer(version)
        for version in gateway_scorers.with_endpoint_names(versions, request.workspace)
    ]
    return {"scorers": shown} if shown else {}


def list_versions(message: m.ListScorerVersions, request: Request) -> dict[str, Any]:
    experiment = experiment_lookup.get_active(message.experiment_id, request)
    versions = scorers.versions(experiment, message.name)
    if not versions:
        raise _missing(message.name, message.experiment_id)
    shown = gateway_scorers.with_endpoint_names(versions, request.workspace)
    return {"scorers": [responses.scorer(version) for version in shown]}


def get_scorer(message: m.GetScorer, request: Request) -> dict[str, Any]:
    experiment = experiment_lookup.get_active(message.experiment_id, request)
    if message.has("version"):
        version = scorers.find(experiment, message.name, message.version)
        if version is None:
            exists = scorers.latest(experiment, message.name) is not None
            missing_version = message.version if exists else None
            raise _missing(message.name, message.experiment_id, missing_version)
    else:
        version = scorers.latest(experiment, message.name)
        if version is None:
            raise _missing(message.name, message.experiment_id)
    (named,) = gateway_scorers.with_endpoint_names([version], request.workspace)
    return {"scorer": responses.scorer(named)}


def delete_scorer(message: m.DeleteScorer, request: Request) -> dict[str, Any]:
    """Deletes the version of a scorer that the request names; without a version, the scorer with
    all its versions, its online scoring configuration and the grants on it. If requests delete the
    versions one by one, the configuration stays for a later scorer of this name, as on MLflow's
    server."""
    experiment = experiment_lookup.get_active(message.experiment_id, request)

    def attempt() -> dict[str, Any]:
        versions = scorers.versions(experiment, message.name)
        if not versions:
            raise _missing(message.name, message.experiment_id)
        is_last = [version.version for version in versions] == [message.version]
        is_used = any(map(gateway_scorers.uses_endpoint, versions))
        if is_used and (is_last or not message.has("version")):
            # First, because a repeated request finds no version that names the endpoint.
            gateway_scorers.bind_endpoint(versions[-1], None, request.workspace)
        if not message.has("version"):
            place = (request.workspace, experiment.experiment_id, message.name)
            pattern = scorer_pattern(experiment.experiment_id, message.name)
            leaving = request.leaving_grants(SCORER, pattern)
            scorers.delete_all(versions, [online_scorers.deletion(*place), *leaving])
        elif not scorers.delete(experiment, message.name, message.version):
            raise _missing(message.name, message.experiment_id, message.version)
        elif is_used and not is_last and scorers.latest(experiment, message.name) is None:
            gateway_scorers.bind_endpoint(versions[-1], None, request.workspace)
        return {}

    return retry_on_conflict("scorer", attempt)


def _stored(experiment: Experiment, name: str) -> tuple[ScorerVersion | None, OnlineScorer | None]:
    """Returns the latest version of a scorer and its online settings, each None if there is none.
    One round trip."""
    place = (experiment.workspace, experiment.experiment_id, name)
    calls: list[Callable[[], Any]] = [
        partial(scorers.latest, experiment, name),
        partial(online_scorers.find, *place),
    ]
    latest, online = table.parallel(calls)
    return latest, online


def get_online_configs(message: m.GetOnlineScoringConfigs, request: Request) -> dict[str, Any]:
    """Returns the online scoring configurations of the requested scorers. Scorers without one are
    left out. Ids of scorers are random, so that a refusal does not help to guess them.

    Raises:
        PermissionDenied: the caller may not read one of the scorers that have a configuration.
    """
    may_read = request.may_read(SCORER)
    configs = online_scorers.with_ids(request.workspace, set(message.scorer_ids))
    if not all(may_read(scorer_pattern(config.experiment_id, config.name)) for config in configs):
        raise errors.PermissionDenied("Permission denied")
    return {"configs": [responses.online_config(config) for config in configs]}


def set_online_config(message: m.SetOnlineScoringConfig, request: Request) -> dict[str, Any]:
    """Replaces a scorer's online scoring configuration. A scorer that was off judges only traces
    that are logged from now on."""
    try:
        rate = float(message.sample_rate)
    except (TypeError, ValueError, OverflowError):
        raise errors.InvalidParameterValue(
            f"sample_rate must be a number, got {type(message.sample_rate).__name__}"
        ) from None
    if not 0.0 <= rate <= 1.0:
        raise errors.InvalidParameterValue(f"sample_rate must be between 0.0 and 1.0, got {rate}")
    if message.filter_string:
        trace_filter.parse_filter(message.filter_string)
    experiment = experiment_lookup.get_active(message.experiment_id, request)
    config = retry_on_conflict("scorer", lambda: _saved_config(message, experiment, rate, request))
    return {"config": responses.online_config(config)}


def _saved_config(
    message: m.SetOnlineScoringConfig, experiment: Experiment, rate: float, request: Request
) -> OnlineScorer:
    """Writes and returns the scorer's online settings, for the latest version of the scorer. Raises
    ResourceDoesNotExist if it has no version, and WriteConflict if other settings (or, for a rate
    above 0, another version) were stored meanwhile."""
    latest = scorers.latest(experiment, message.name)
    if latest is None:
        raise _missing(message.name, message.experiment_id)
    if rate > 0:
        _check_online(latest)
        if request.access is not None:
            (named,) = gateway_scorers.with_endpoint_names([latest], request.workspace)
            model_checks.check_judges_automatically(
                experiment.experiment_id, message.name, named.serialized_scorer, request
            )
    before = online_scorers.find(request.workspace, experiment.experiment_id, message.name)
    was_on = before is not None and before.sample_rate > 0
    owner = request.creator() if rate > 0 else NOBODY
    data = json.loads(latest.serialized_scorer)
    config = OnlineScorer(
        config_id=uuid4().hex,
        workspace=request.workspace,
        experiment_id=experiment.experiment_id,
        name=message.name,
        scorer_id=latest.scorer_id,
        sample_rate=rate,
        filter_string=message.filter_string or None,
        since=before.since if before is not None and was_on else ids.now_ms(),
        owner=owner.username,
        owner_id=owner.user_id,
        endpoint_id=judge_endpoint(data) if rate > 0 else None,
        seal=seal_of(latest) if rate > 0 and code_limits.is_code(data) else None,
    )
    if before is not None and before == config._replace(
        config_id=before.config_id, since=before.since
    ):
        return before  # a repeated request changes nothing
    online_scorers.save(config, before, scorers.is_latest(latest) if rate > 0 else ())
    return config


def _confirmation(
    message: m.RegisterScorer,
    version: ScorerVersion,
    judge: StoredScorer,
    online: OnlineScorer | None,
    request: Request,
    *,
    runs_code: bool,
) -> list[Any]:
    """Returns what must be written or checked in the transaction that stores a version, so that the
    scorer's online settings are those of the version.

    If the scorer judges automatically, and the version is code or (where logins are required) calls
    another endpoint, the settings are confirmed in the caller's name. Otherwise they must stay as
    they were read: somebody may turn the former version on meanwhile. Raises PermissionDenied if
    the caller may not let the version judge automatically.

    Args:
        online: the scorer's online settings as they were read; None if it has none.
    """
    if not runs_code and (request.access is None or judge.endpoint_id is None):
        return []
    if (
        online is None
        or online.sample_rate <= 0
        or (not runs_code and online.endpoint_id == judge.endpoint_id)
    ):
        place = (request.workspace, version.experiment_id, version.name)
        return [online_scorers.unchanged(*place, online)]
    model_checks.check_judges_automatically(
        version.experiment_id, version.name, message.serialized_scorer, request
    )
    owner = request.creator()
    confirmed = online._replace(
        config_id=uuid4().hex,
        owner=owner.username,
        owner_id=owner.user_id,
        endpoint_id=judge.endpoint_id,
        seal=seal_of(version) if runs_code else None,
    )
    return [online_scorers.replacement(confirmed, online)]


def _check_online(version: ScorerVersion) -> None:
    """Checks that a scorer can run automatically. As on MLflow's server, a scorer whose JSON is not
    a complete judge (one without a name, for example) is accepted; the sweep that runs online
    scoring logs and skips it.

    Raises:
        InvalidParameterValue: it is a judge without a gateway endpoint, or needs expectations.
        OnlyRunByClients: only a client can run it.
    """
    data = json.loads(version.serialized_scorer)
    is_code = code_limits.is_code(data) and code_is_allowed()
    if not is_code and not gateway_scorers.uses_endpoint(version):
        raise errors.InvalidParameterValue(
            f"Scorer '{version.name}' does not use a gateway model. "
            "Automatic evaluation is only supported for scorers that use "
            "gateway models."
        )
    try:
        scorer = parse_scorer(data)
    except judge_limits.OnlyRunByClients:
        raise
    except errors.InvalidParameterValue:
        return
    if isinstance(scorer, CodeScorer):
        needs_expectations = code_limits.takes_expectations(scorer)
    else:
        needs_expectations = EXPECTATIONS in scorer.variables
    if needs_expectations:
        raise errors.InvalidParameterValue(
            f"Scorer '{version.name}' requires expectations, but scorers with "
            "expectations are not currently supported for automatic evaluation."
        )


def _load_active(experiment_ids: list[str], request: Request) -> list[Experiment]:
    known = experiments.find_existing(experiment_ids, request.workspace)
    return [experiment for experiment in known if experiment.lifecycle_stage == ACTIVE]


def _missing(
    name: str, experiment_id: str, version: int | None = None
) -> errors.ResourceDoesNotExist:
    of_version = "" if version is None else f" and version {version}"
    return errors.ResourceDoesNotExist(
        f"Scorer with name '{name}'{of_version} not found for experiment {experiment_id}."
    )
