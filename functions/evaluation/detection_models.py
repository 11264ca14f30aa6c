"""Reads and checks the language model that a request to detect issues in traces names."""

from __future__ import annotations

from evaluation import job_messages as m
from mlcore import errors
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.entities.gateway import SavedKeyModel
from mlcore.providers.known_providers import has_address


def of_message(message: m.InvokeIssueDetection) -> JobModel:
    """Returns the model that a request to detect issues names. Raises InvalidParameterValue if it
    names none that this server can call."""
    if message.endpoint_name:
        return JobModel(message.endpoint_name)
    if not message.model:
        raise errors.InvalidParameterValue(
            "Either 'endpoint_name' or both 'provider' and 'model' must be provided"
        )
    check_provider(message.provider)
    if not message.secret_id:
        # MLflow's UI asks for a key if the message begins with these words.
        raise errors.InvalidParameterValue(
            f"No API key available for provider '{message.provider}'. Save an API key in AI "
            "Gateway."
        )
    key = SavedKeyModel(message.secret_id, message.provider.lower(), message.model)
    return JobModel("", key)


def check_provider(provider: str) -> None:
    """Raises InvalidParameterValue if the server has no class for a model provider: at most
    endpoints of the AI gateway call its models."""
    if not has_address(provider.lower()):
        raise errors.InvalidParameterValue(
            f"Unsupported provider '{provider}'. Choose a supported provider or AI Gateway "
            "endpoint."
        )
