"""Routes of the Lambda function ``logged_models``."""

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
        since="3.0",
        cost=2,
    ),
    post(
        f"{MODELS}/search",
        m.SearchLoggedModels,
        search.search_logged_models,
        "logged_models.search",
        hides="logged_models",
        since="3.0",
        cost=1,
        reads=True,
    ),
    get(
        MODEL,
        m.GetLoggedModel,
        service.get_logged_model,
        "logged_models.read_model",
        hides="logged_model",
        since="3.0",
        cost=1,
    ),
    patch(
        MODEL,
        m.FinalizeLoggedModel,
        service.finalize_logged_model,
        "logged_models.update_model",
        hides="logged_model",
        since="3.0",
        cost=2,
    ),
    delete(
        MODEL,
        m.DeleteLoggedModel,
        service.delete_logged_model,
        "logged_models.delete_model",
        since="3.0",
        cost=2,
    ),
    patch(
        f"{MODEL}/tags",
        m.SetLoggedModelTags,
        service.set_logged_model_tags,
        "logged_models.update_model",
        hides="logged_model",
        since="3.0",
        cost=2,
    ),
    delete(
        f"{MODEL}/tags/{{tag_key}}",
        m.DeleteLoggedModelTag,
        service.delete_logged_model_tag,
        "logged_models.delete_model",
        since="3.0",
        cost=2,
    ),
    post(
        f"{MODEL}/params",
        m.LogLoggedModelParams,
        service.log_logged_model_params,
        "logged_models.update_model",
        since="3.0",
        cost=2,
    ),
)

handler = lambda_handler(RPCS)
