"""The RPCs of logged models."""

from __future__ import annotations

from logged_models import messages as m
from logged_models import search, service
from mlcore.http import delete, get, lambda_handler, patch, post

MODELS = "/mlflow/logged-models"
MODEL = f"{MODELS}/{{path_model_id}}"

RPCS = (
    post(
        MODELS,
        m.CreateLoggedModel,
        service.create_logged_model,
        "logged_models.create",
        hides="logged_model",
    ),
    post(
        f"{MODELS}/search",
        m.SearchLoggedModels,
        search.search_logged_models,
        "logged_models.search",
        hides="logged_models",
    ),
    get(
        MODEL,
        m.GetLoggedModel,
        service.get_logged_model,
        "logged_models.read_model",
        hides="logged_model",
    ),
    patch(
        MODEL,
        m.FinalizeLoggedModel,
        service.finalize_logged_model,
        "logged_models.update_model",
        hides="logged_model",
    ),
    delete(MODEL, m.DeleteLoggedModel, service.delete_logged_model, "logged_models.delete_model"),
    patch(
        f"{MODEL}/tags",
        m.SetLoggedModelTags,
        service.set_logged_model_tags,
        "logged_models.update_model",
        hides="logged_model",
    ),
    delete(
        f"{MODEL}/tags/{{tag_key}}",
        m.DeleteLoggedModelTag,
        service.delete_logged_model_tag,
        "logged_models.delete_model",
    ),
    post(
        f"{MODEL}/params",
        m.LogLoggedModelParams,
        service.log_logged_model_params,
        "logged_models.update_model",
    ),
)

handler = lambda_handler(RPCS)
