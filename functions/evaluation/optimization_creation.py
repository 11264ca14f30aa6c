"""Submits the jobs that optimize prompts.

Before a job is created, the prompt version, the endpoints and the scorers' definitions are read and
stored in the job. So the caller's rights are checked for exactly what the job will use.
"""

from __future__ import annotations

import json
from typing import Any, Final

from evaluation import experiment_lookup, gateway_scorers, model_checks
from evaluation import optimization_messages as m
from mlcore import errors, ids, reserved_tags
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.datasets import EvaluationDataset
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.entities.evaluation.jobs import (
    OPTIMIZE_PROMPT,
    Job,
)
from mlcore.entities.evaluation.judges import CONVERSATION, TRACE
from mlcore.entities.evaluation.prompt_optimization import GEPA, OptimizerSettings
from mlcore.entities.evaluation.scorers import SealedSource
from mlcore.entities.experiments import Experiment
from mlcore.entities.registry import ModelVersion
from mlcore.entities.runs import Dataset, DatasetInput, Param, Run
from mlcore.entities.tags import Tag
from mlcore.http import Request
from mlcore.limits import prompt_uris
from mlcore.limits.evaluation import prompt_optimization as limits
from mlcore.limits.evaluation.code_scorers import sealed_source
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.limits.run_datasets import MAX_NAME_LENGTH
from mlcore.limits.runs import check_log_batch
from mlcore.prompt_templates import PromptTemplate
from mlcore.prompts import is_prompt
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.evaluation import job_runs, jobs, scorers
from mlcore.repos.experiments import experiments
from mlcore.repos.registry import model_versions, registered_models
from mlcore.repos.runs.core import datasets as run_datasets
from mlcore.responses.evaluation import prompt_optimization as responses
from mlcore.wire.json_text import load_json

_CONTEXT: Final = "optimization"
_SOURCE_TYPE: Final = "mlflow_evaluation_dataset"


def create_job(message: m.CreatePromptOptimizationJob, request: Request) -> dict[str, Any]:
    """Creates a job that optimizes a prompt, with its run, in one transaction, and queues the job.
    A request that is sent twice creates two jobs, as in MLflow.

    Raises:
        RequestLimitExceeded: the queue accepts no jobs. Neither the run nor the job is stored.
    """
    config = message.config or m.PromptOptimizationJobConfig()
    kind = limits.optimizer_type(config.optimizer_type)
    experiment_id = message.experiment_id.strip()
    if not experiment_id:
        raise errors.InvalidParameterValue("experiment_id is required for optimization job")
    optimizer_config = limits.parse_config(config.optimizer_config_json)
    run_id = ids.new_ulid()
    logged = _params(message, config, kind, run_id)
    settings = limits.optimizer_settings(kind, optimizer_config)
    limits.check_data(kind, has_dataset=bool(config.dataset_id), scorers=len(config.scorers))
    experiment = experiment_lookup.get_active(experiment_id, request)
    version = _prompt_version(message.source_prompt_uri, request)
    dataset = _dataset(config.dataset_id, request) if config.dataset_id else None
    scorers_of_job = [
        _scorer(name, experiment, settings, request) for name in dict.fromkeys(config.scorers)
    ]
    texts = [text for text, _ in scorers_of_job]
    sources = [source for _, source in scorers_of_job]
    endpoint = limits.endpoint_of_prompt(message.source_prompt_uri, _model_config(version))
    endpoints = {endpoint, settings.reflection_endpoint, *_endpoints_of(texts)}
    model_checks.check_usable(list(map(JobModel, endpoints)), request)
    params = {
        "run_id": run_id,
        "experiment_id": experiment.experiment_id,
        "prompt_uri": message.source_prompt_uri,
        "dataset_id": config.dataset_id,
        "optimizer_type": kind,
        "optimizer_config": optimizer_config,
        "scorer_names": list(config.scorers),
        "prompt_name": version.name,
        "prompt_version": version.version,
        "prompt_endpoint": endpoint,
        "serialized_scorers": texts,
        **({"sealed_sources": sources} if any(sources) else {}),
        "tags": [{"key": tag.key, "value": tag.value} for tag in message.tags],
        "username": request.username(),
    }
    total = _total(kind, settings, dataset)
    job = jobs.new(
        request.workspace,
        OPTIMIZE_PROMPT,
        params,
        total,
        request.creator(),
        job_runs.timeout(
            total * (1 + len(texts)),
            job_runs.code_seconds([parse_scorer(json.loads(text)) for text in texts], [total]),
        ),
    )
    _submit(job, _new_run(job, logged, dataset, experiment), experiment)
    return {"job": responses.job(job)}


def _submit(job: Job, run: Run, experiment: Experiment) -> None:
    """Creates the run and the job, and adds the run's datasets, with the context ``optimization``,
    to the experiment's list of datasets. Raises RequestLimitExceeded if the queue accepts no
    messages, ResourceDoesNotExist if the experiment is being removed."""
    used, experiment_id = [entry.dataset for entry in run.dataset_inputs], experiment.experiment_id
    run_datasets.ensure(experiment_id, used)
    contexts = [run_datasets.context_write(experiment_id, dataset, _CONTEXT) for dataset in used]
    try:
        job_runs.submit(job, run, experiment, contexts)
    except AdditionalOperationFailed:
        raise experiments.missing(experiment_id) from None


def _params(
    message: m.CreatePromptOptimizationJob,
    config: m.PromptOptimizationJobConfig,
    kind: str,
    run_id: str,
) -> dict[str, str]:
    """Returns the params of the run. Raises InvalidParameterValue if one is too long."""
    params = [
        Param("source_prompt_uri", message.source_prompt_uri),
        Param("optimizer_type", kind),
        Param("dataset_id", config.dataset_id),
        Param("scorer_names", json.dumps(config.scorers)),
    ]
    if config.optimizer_config_json:
        params.append(Param("optimizer_config_json", config.optimizer_config_json))
    return dict(check_log_batch(run_id, (), params, ()).params)


def _prompt_version(uri: str, request: Request) -> ModelVersion:
    """Returns the prompt version that a URI names. Raises ResourceDoesNotExist, or
    InvalidParameterValue for a malformed URI or a template that this server cannot fill, such as
    one of Jinja2."""
    wanted = prompt_uris.parse_prompt_uri(uri)
    model = registered_models.find(request.workspace, wanted.name)
    if model is None or not is_prompt(model.model.tags):
        raise errors.ResourceDoesNotExist(f"Prompt with name={wanted.name} not found")
    number = wanted.version
    if number is None:
        alias = wanted.alias or ""
        latest = max(model.model.latest.values(), default=None)
        number = latest if alias.lower() == "latest" else model.model.aliases.get(alias)
    if number is None:
        raise errors.ResourceDoesNotExist(f"Prompt {uri} not found")
    version = model_versions.of_model(model, number).version
    template = PromptTemplate(
        version.tags.get(reserved_tags.PROMPT_TEXT, ""),
        version.tags.get(reserved_tags.PROMPT_TYPE) == reserved_tags.CHAT_PROMPT,
    )
    if template.is_jinja():
        raise errors.InvalidParameterValue(
            f"Prompt {uri} is a template of Jinja2, which this server does not run. "
            "Use variables in double braces alone."
        )
    try:
        template.messages()
    except ValueError as error:
        raise errors.InvalidParameterValue(f"Prompt {uri} is no chat prompt: {error}.") from error
    return version


def _model_config(version: ModelVersion) -> Any:
    try:
        return load_json(version.tags.get(reserved_tags.PROMPT_MODEL_CONFIG, "null"))
    except ValueError:
        return None


def _dataset(dataset_id: str, request: Request) -> EvaluationDataset:
    dataset = evaluation_datasets.find(request.workspace, dataset_id)
    if dataset is None:
        raise errors.ResourceDoesNotExist(f"Evaluation dataset with id '{dataset_id}' not found")
    limits.check_record_count(_record_count(dataset))
    return dataset


def _record_count(dataset: EvaluationDataset) -> int:
    """Returns the dataset's number of records, which its profile contains. Each change of the
    records updates the profile."""
    profile = json.loads(dataset.profile or "null")
    return int(profile["num_records"]) if profile else 0


def _scorer(
    name: str, experiment: Experiment, settings: OptimizerSettings, request: Request
) -> tuple[str, SealedSource | None]:
    """Returns the definition of a scorer: of a built-in judge, which asks the model that proposes
    prompts, or of the latest version of a registered scorer. The second value is the sealed source
    of a scorer that is code, else None. Raises InvalidParameterValue."""
    if limits.check_builtin(name):
        return json.dumps(limits.builtin_scorer(name, settings.reflection_endpoint)), None
    version = scorers.latest(experiment, name) if name else None
    if version is None:
        raise errors.InvalidParameterValue(
            f"Scorer '{name}' not found. It is neither a built-in scorer "
            f"(e.g., 'Correctness', 'Safety') nor a registered scorer in "
            f"experiment '{experiment.experiment_id}'."
        )
    (shown,) = gateway_scorers.with_endpoint_names([version], request.workspace)
    scorer = parse_scorer(json.loads(shown.serialized_scorer))
    if scorer.of_sessions:
        raise _unfit(name, "judges conversations")
    if not isinstance(scorer, CodeScorer):
        if limits.endpoint_of_model(scorer.model) is None:
            raise _unfit(name, f"asks the model '{scorer.model}', which is no gateway endpoint,")
        if scorer.builtin:
            limits.check_builtin(scorer.builtin)
        if {TRACE, CONVERSATION}.intersection(scorer.variables):
            raise _unfit(name, "needs a trace")
    return shown.serialized_scorer, sealed_source(shown)


def _unfit(name: str, reason: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(
        f"Scorer '{name}' {reason} and so cannot judge the answer to a prompt."
    )


def _endpoints_of(texts: list[str]) -> set[str]:
    parsed = [parse_scorer(json.loads(text)) for text in texts]
    names = [
        limits.endpoint_of_model(scorer.model)
        for scorer in parsed
        if not isinstance(scorer, CodeScorer)
    ]
    return {name for name in names if name is not None}


def _total(kind: str, settings: OptimizerSettings, dataset: EvaluationDataset | None) -> int:
    """Returns about how many evaluations of single records the job will make."""
    if kind == GEPA:
        return settings.evolution.max_metric_calls
    return 1 if dataset is None else 2 * _record_count(dataset)


def _new_run(
    job: Job, params: dict[str, str], dataset: EvaluationDataset | None, experiment: Experiment
) -> Run:
    wanted = prompt_uris.parse_prompt_uri(job.params["prompt_uri"])
    version = wanted.version if wanted.version is not None else job.params["prompt_version"]
    name = (
        f"optimize_prompt_{job.params['optimizer_type']}_{wanted.name}_{version}_"
        f"{job.creation_time}"
    )
    inputs = (
        ()
        if dataset is None
        else (DatasetInput(_run_dataset(dataset), (Tag(reserved_tags.DATASET_CONTEXT, _CONTEXT),)),)
    )
    run = job_runs.new_run(job, experiment, name)
    return run._replace(params=params, dataset_inputs=inputs)


def _run_dataset(dataset: EvaluationDataset) -> Dataset:
    return Dataset(
        dataset.name[:MAX_NAME_LENGTH],
        dataset.digest,
        _SOURCE_TYPE,
        json.dumps({"dataset_id": dataset.dataset_id}),
        dataset.schema,
        dataset.profile,
    )
