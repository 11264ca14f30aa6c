"""Permission checks for jobs that optimize prompts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore.auth.permissions import (
    ANY,
    EXPERIMENT,
    PROMPT,
    PROMPT_VERSION,
    REGISTERED_MODEL,
    RUN,
    SCORER,
    SCORER_VERSION,
    scorer_pattern,
)
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.entities.evaluation.jobs import OPTIMIZE_PROMPT
from mlcore.limits.prompt_uris import parse_prompt_uri
from mlcore.policies.access import Access
from mlcore.policies.datasets_and_scorers import on_experiments
from mlcore.policies.registry import kind_of
from mlcore.policies.shared_rules import Policy, create_inside, subject
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.evaluation import jobs


def create(access: Access, message: Any) -> bool:
    """Allows the optimization of a prompt to callers for whom :func:`may_optimize` is true. If the
    prompt is missing, allows the request also to callers who may read prompts and registered models
    of this name, create runs in the experiment and read the dataset (if one is named and exists).
    The service then tells them that the prompt is missing."""
    config = message.config
    experiment_id = subject(message, "experiment_id").strip()
    prompt_uri = message.source_prompt_uri
    dataset_id = config.dataset_id if config is not None else ""
    scorer_names = config.scorers if config is not None else []
    return may_optimize(access, experiment_id, prompt_uri, scorer_names, dataset_id) or (
        _may_see_that_prompt_is_missing(access, prompt_uri)
        and access.allows(*create_inside(experiment_id, RUN))
        and (not dataset_id or _may_read_if_any(access, dataset_id))
    )


def _may_see_that_prompt_is_missing(access: Access, prompt_uri: str) -> bool:
    """Whether the prompt is missing, and the caller could read a prompt or registered model with
    its name. Prompts and registered models share names, so both rights are needed."""
    name = parse_prompt_uri(prompt_uri).name
    return (
        bool(name)
        and kind_of(access.workspace, name) is None
        and access.allows(
            Requirement(PROMPT, name, "read"), Requirement(REGISTERED_MODEL, name, "read")
        )
    )


def _may_read_if_any(access: Access, dataset_id: str) -> bool:
    """Whether the dataset is missing or the caller may read it. The prompt may be created before
    the service looks for it, which then uses the dataset."""
    dataset = evaluation_datasets.find(access.workspace, dataset_id)
    return dataset is None or on_experiments(access, dataset.experiment_ids, "read")


def may_optimize(
    access: Access,
    experiment_id: str,
    prompt_uri: str,
    scorer_names: Iterable[str],
    dataset_id: str,
) -> bool:
    """Whether the caller may create runs in the experiment, register versions of the prompt (the
    job registers one), read the dataset, and is denied none of the scorers. A prompt or dataset
    that is missing is refused like one without a grant, so that names and ids cannot be probed.
    :func:`mlcore.policies.jobs.may_use_models` decides about the endpoints, once they are known.

    Args:
        dataset_id: empty for an optimization without a dataset.
    """
    prompt = parse_prompt_uri(prompt_uri).name
    if kind_of(access.workspace, prompt) != PROMPT or not access.allows(
        *create_inside(experiment_id, RUN),
        Requirement(PROMPT, prompt, "update"),
        Requirement(PROMPT_VERSION, ANY, NOT_DENIED),
        Requirement(SCORER_VERSION, ANY, NOT_DENIED),
        *(
            Requirement(SCORER, scorer_pattern(experiment_id, name), NOT_DENIED)
            for name in dict.fromkeys(scorer_names)
        ),
    ):
        return False
    if not dataset_id:
        return True
    dataset = evaluation_datasets.find(access.workspace, dataset_id)
    return dataset is not None and on_experiments(access, dataset.experiment_ids, "read")


def on_job(action: str) -> Policy:
    """Returns the policy that requires the action on the experiment of a job that optimizes a
    prompt. A missing job and one of another kind are refused like one without a grant, so that ids
    cannot be probed."""

    def policy(access: Access, message: Any) -> bool:
        job = jobs.find(access.workspace, message.job_id)
        return (
            job is not None
            and job.name == OPTIMIZE_PROMPT
            and access.allows(
                Requirement(EXPERIMENT, job.params["experiment_id"], action),
                Requirement(RUN, ANY, NOT_DENIED),
            )
        )

    return policy


def search(access: Access, message: Any) -> bool:
    """Allows listing an experiment's jobs that optimize prompts to those who may read it and its
    runs."""
    return access.allows(
        Requirement(EXPERIMENT, subject(message, "experiment_id"), "read"),
        Requirement(RUN, ANY, NOT_DENIED),
    )


read_job = on_job("read")
update_job = on_job("update")
delete_job = on_job("delete")
