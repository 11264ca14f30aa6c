"""The sample data that testing a webhook sends, as MLflow's server sends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore.entities.webhooks import EventName

_TAGS: Final = {"example_key": "example_value"}
_TAG: Final = {"key": "example_key", "value": "example_value"}
_ALIAS: Final = {"alias": "example_alias", "version": "1"}


def example(event: EventName) -> Mapping[str, Any]:
    """Returns the sample data that a test of a webhook sends for an event."""
    return _EXAMPLES[str(event)]


_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "registered_model.created": {
        "name": "example_model",
        "tags": _TAGS,
        "description": "An example registered model",
    },
    "model_version.created": {
        "name": "example_model",
        "version": "1",
        "source": "models:/123",
        "run_id": "abcd1234abcd5678",
        "tags": _TAGS,
        "description": "An example model version",
    },
    "model_version_tag.set": {"name": "example_model", "version": "1", **_TAG},
    "model_version_tag.deleted": {"name": "example_model", "version": "1", "key": "example_key"},
    "model_version_alias.created": {"name": "example_model", **_ALIAS},
    "model_version_alias.deleted": {"name": "example_model", "alias": "example_alias"},
    "prompt.created": {
        "name": "example_prompt",
        "tags": _TAGS,
        "description": "An example prompt",
    },
    "prompt_version.created": {
        "name": "example_prompt",
        "version": "1",
        "template": "Hello {{name}}!",
        "tags": _TAGS,
        "description": "An example prompt version",
    },
    "prompt_tag.set": {"name": "example_prompt", **_TAG},
    "prompt_tag.deleted": {"name": "example_prompt", "key": "example_key"},
    "prompt_version_tag.set": {"name": "example_prompt", "version": "1", **_TAG},
    "prompt_version_tag.deleted": {"name": "example_prompt", "version": "1", "key": "example_key"},
    "prompt_alias.created": {"name": "example_prompt", **_ALIAS},
    "prompt_alias.deleted": {"name": "example_prompt", "alias": "example_alias"},
    "budget_policy.exceeded": {
        "budget_policy_id": "bp-abc123",
        "budget_unit": "USD",
        "budget_amount": 100.0,
        "current_spend": 105.50,
        "duration_unit": "MONTHS",
        "duration_value": 1,
        "target_scope": "ENDPOINT",
        "workspace": "default",
        "target_value": "ep-abc123",
        "window_start": 1704067200000,
    },
}
