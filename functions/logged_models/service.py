"""Creates, finalizes, deletes and tags logged models, and logs their params, by the rules of
MLflow's tracking server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logged_models import messages as m
from mlcore import errors, ids
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.logged_models import LoggedModel
from mlcore.http import Request
from mlcore.limits import logged_models as limits
from mlcore.limits.artifact_locations import join
from mlcore.limits.experiments import experiment_id
from mlcore.repos.experiments import experiments
from mlcore.repos.logged_models import logged_models
from mlcore.repos.logged_models.logged_models import StoredLoggedModel
from mlcore.responses import logged_models as responses
from mlcore.run_names import generate

NEW_STATUS = "LOGGED_MODEL_PENDING"


def create_logged_model(message: m.CreateLoggedModel, request: Request) -> dict[str, Any]:
    """Creates a logged model. Two round trips: one reads the experiment, one transaction writes the
    model."""
    limits.check_name(message.name)
    owner = experiment_id(message.experiment_id)
    experiment = experiments.get_active(owner, request.workspace).experiment
    model_id = ids.new_model_id()
    now = ids.now_ms()
    model = LoggedModel(
        model_id=model_id,
        experiment_id=experiment.experiment_id,
        name=message.name or generate(),
        artifact_location=join(experiment.artifact_location, f"models/{model_id}/artifacts"),
        creation_time=now,
        last_update_time=now,
        status=NEW_STATUS,
        lifecycle_stage=ACTIVE,
        model_type=message.model_type,
        source_run_id=message.source_run_id,
        params=limits.check_params(message.params),
        tags=limits.check_new_tags(message.tags),
    )
    logged_models.create(model, request.workspace)
    return {"model": responses.logged_model(model)}


def get_logged_model(message: m.GetLoggedModel, request: Request) -> dict[str, Any]:
    allow_deleted = message.allow_deleted.lower() == "true"
    load = logged_models.load if allow_deleted else logged_models.load_active
    model = load(message.path_model_id, request.workspace)
    return {"model": responses.logged_model(logged_models.entity(model))}


def finalize_logged_model(message: m.FinalizeLoggedModel, request: Request) -> dict[str, Any]:
    """Sets the status of a logged model. Every change of status is allowed, and deleted models can
    be finalized."""
    model = logged_models.load(message.path_model_id, request.workspace)
    changed = logged_models.set_status(model, message.status or "LOGGED_MODEL_STATUS_UNSPECIFIED")
    return {"model": responses.logged_model(logged_models.entity(changed))}


def delete_logged_model(message: m.DeleteLoggedModel, request: Request) -> dict[str, Any]:
    logged_models.delete(logged_models.load(message.path_model_id, request.workspace))
    return {}


def set_logged_model_tags(message: m.SetLoggedModelTags, request: Request) -> dict[str, Any]:
    model = logged_models.load(message.path_model_id, request.workspace)
    tags = limits.check_tags(message.tags)

    def decide(model: StoredLoggedModel) -> tuple[dict[str, Mapping[str, str]], tuple[()]]:
        known = model.document.texts("tags")
        return {"tags": {key: text for key, text in tags.items() if known.get(key) != text}}, ()

    logged_models.write(model, decide)
    return {}


def delete_logged_model_tag(message: m.DeleteLoggedModelTag, request: Request) -> dict[str, Any]:
    model = logged_models.load(message.path_model_id, request.workspace)
    if message.tag_key not in model.document.texts("tags"):
        raise errors.ResourceDoesNotExist(
            f"No tag with key {message.tag_key!r} found for model with ID {model.model_id!r}."
        )
    logged_models.write(model, lambda _: ({}, [("tags", message.tag_key)]))
    return {}


def log_logged_model_params(message: m.LogLoggedModelParams, request: Request) -> dict[str, Any]:
    """Adds params to a logged model. Raises BadRequest if a param has another value already; one
    with an equal value is left unchanged, so a retry has no further effect."""
    model = logged_models.load(message.path_model_id, request.workspace)
    params = limits.check_params(message.params)

    def decide(model: StoredLoggedModel) -> tuple[dict[str, Mapping[str, str]], tuple[()]]:
        known = model.document.texts("params")
        changed = [key for key, text in params.items() if known.get(key, text) != text]
        if changed:
            raise errors.BadRequest(
                f"The logged model with ID '{model.model_id}' already has other values of the "
                f"params {changed}."
            )
        return {"params": {key: text for key, text in params.items() if key not in known}}, ()

    logged_models.write(model, decide)
    return {}
