"""What a secret may hold: MLflow's rules of where calls may go with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from mlcore.errors import InvalidParameterValue
from mlcore.providers.settings import private_allowed
from mlcore.webhooks.addresses import check_public_url, schemes_in

_DESTINATIONS: Final = frozenset(
    ("api_base", "base_url", "model_list", "fallbacks", "custom_llm_provider")
)


def checked_auth_config(auth_config: Mapping[str, str]) -> dict[str, str]:
    """What is kept of it: a blank ``api_base`` counts as none.

    Raises:
        InvalidParameterValue: it says by another key where calls go, or they may not go there.
    """
    _check_reserved(
        auth_config,
        _DESTINATIONS - {"api_base"},
        "auth_config must not contain {}: these LiteLLM options choose where the gateway sends "
        "requests. Set the upstream with 'api_base', which is validated.",
    )
    kept = dict(auth_config)
    api_base = kept.pop("api_base", "").strip()
    if api_base:
        check_public_url(
            api_base,
            "Gateway secret api_base",
            schemes_in(os.environ.get("MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES", "")),
            private=private_allowed(),
        )
        kept["api_base"] = api_base
    return kept


def check_secret_value(secret_value: Iterable[str]) -> None:
    """Its keys alone are looked at. Raises InvalidParameterValue."""
    _check_reserved(
        secret_value,
        _DESTINATIONS,
        "secret_value must not contain {}: these keys choose where the gateway sends requests. "
        "Set the upstream with 'api_base' in auth_config, where it is validated.",
    )


def _check_reserved(found: Iterable[str], reserved: frozenset[str], refusal: str) -> None:
    named = sorted(reserved.intersection(found))
    if named:
        raise InvalidParameterValue(refusal.format(", ".join(map(repr, named))))
