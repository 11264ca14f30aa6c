"""The RPCs of logged models."""

from __future__ import annotations

from logged_models import messages as m
from logged_models import search, service
from mlcore.http import delete, get, lambda_handler, patch, post

MODELS = "/mlflow/logged-models"
MODEL = f"{MODELS}/{{path_model_id}}"

RPCS = (
    post(MODELS, m.CreateLoggedModel, service.create_logged_model),
    post(f"{MODELS}/search", m.SearchLoggedModels, search.search_logged_models),
    get(MODEL, m.GetLoggedModel, service.get_logged_model),
    patch(MODEL, m.FinalizeLoggedModel, service.finalize_logged_model),
    delete(MODEL, m.DeleteLoggedModel, service.delete_logged_model),
    patch(f"{MODEL}/tags", m.SetLoggedModelTags, service.set_logged_model_tags),
    delete(f"{MODEL}/tags/{{tag_key}}", m.DeleteLoggedModelTag, service.delete_logged_model_tag),
    post(f"{MODEL}/params", m.LogLoggedModelParams, service.log_logged_model_params),
)

handler = lambda_handler(RPCS)
