"""Calls a model with a saved API key of its provider, for code of the server that has no endpoint.

The call goes through an endpoint that is made for it and stored nowhere. So it has no guardrails
and leaves no trace; global budgets, and budgets and limits of its user and workspace, apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore.entities.gateway import (
    PRIMARY,
    Configuration,
    Endpoint,
    ModelDefinition,
    ModelMapping,
    SavedKeyModel,
)
from mlcore.gateway import guarded_calls
from mlcore.repos.gateway import configuration

_ID: Final = "saved key"
"""The id of the endpoint, its model and its mapping; stored ids have no spaces."""


def complete_chat(
    model: SavedKeyModel,
    workspace: str,
    endpoint_name: str,
    chat: Mapping[str, Any],
    username: str | None = None,
    *,
    judges: bool = False,
    repeats_itself: bool = False,
) -> dict[str, Any]:
    """Completes a chat with a provider's model by a saved API key of the provider. Each call reads
    the saved key, so a deleted key stops working at once.

    Arguments, result and errors are those of :func:`mlcore.gateway.guarded_calls.complete_chat`,
    except:

    Args:
        endpoint_name: the name, in error messages, of the endpoint that is made for this call.

    Raises:
        ResourceDoesNotExist: the saved key was deleted.
        InvalidParameterValue: the saved key is another provider's.
    """
    known = configuration.read(workspace)
    model.check_usable(known)
    known = _with_endpoint(known, model, endpoint_name)
    return guarded_calls.complete_chat(
        workspace,
        endpoint_name,
        chat,
        username,
        judges=judges,
        repeats_itself=repeats_itself,
        known=known,
    )


def _with_endpoint(known: Configuration, model: SavedKeyModel, name: str) -> Configuration:
    definition = ModelDefinition(
        model_definition_id=_ID,
        name=name,
        secret_id=model.secret_id,
        provider=model.provider,
        model_name=model.model_name,
        created_by=None,
        last_updated_by=None,
        created_at=0,
        last_updated_at=0,
    )
    endpoint = Endpoint(
        endpoint_id=_ID,
        name=name,
        mappings=(ModelMapping(_ID, _ID, 1.0, PRIMARY, None, 0, None),),
        tags={},
        bindings=(),
        guardrails=(),
        routing_strategy=None,
        fallback=None,
        experiment_id=None,
        usage_tracking=False,
        created_by=None,
        last_updated_by=None,
        created_at=0,
        last_updated_at=0,
    )
    return known._replace(
        model_definitions={**known.model_definitions, _ID: definition},
        endpoints={_ID: endpoint},
    )
