"""Checks the fields of an AI gateway's secret. As on MLflow's server, of the keys that choose the
address of model calls a secret may have only ``api_base``, which is validated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from mlcore.errors import InvalidParameterValue
from mlcore.limits.gateway import MAX_AUTH_CONFIG_LENGTH
from mlcore.providers.environment import private_allowed
from mlcore.public_addresses import check_public_url, parse_schemes

_DESTINATIONS: Final = frozenset(
    ("api_base", "base_url", "model_list", "fallbacks", "custom_llm_provider")
)


def check_auth_config(auth_config: Mapping[str, str]) -> dict[str, str]:
    """Returns the ``auth_config`` of a secret in the form to store, without a blank ``api_base``.
    Raises InvalidParameterValue if ``api_base`` is not an allowed address, or if another key would
    choose the address that the gateway calls."""
    _check_reserved(
        auth_config,
        _DESTINATIONS - {"api_base"},
        "auth_config must not contain {}: these LiteLLM options choose where the gateway sends "
        "requests. Set the upstream with 'api_base', which is validated.",
    )
    kept = dict(auth_config)
    size = sum(len(key) + len(value) for key, value in kept.items())
    if size > MAX_AUTH_CONFIG_LENGTH:
        raise InvalidParameterValue(
            f"auth_config has {size} characters; at most {MAX_AUTH_CONFIG_LENGTH} are allowed."
        )
    api_base = kept.pop("api_base", "").strip()
    if api_base:
        check_public_url(
            api_base,
            "Gateway secret api_base",
            parse_schemes(os.environ.get("MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES", "")),
            private=private_allowed(),
        )
        kept["api_base"] = api_base
    return kept


def check_secret_value(secret_value: Iterable[str]) -> None:
    """Checks that no key of a gateway secret's JSON object chooses the address that the gateway
    calls; raises InvalidParameterValue if one does. The values of the keys are not checked."""
    _check_reserved(
        secret_value,
        _DESTINATIONS,
        "secret_value must not contain {}: these keys choose where the gateway sends requests. "
        "Set the upstream with 'api_base' in auth_config, where it is validated.",
    )


def _check_reserved(keys: Iterable[str], reserved: frozenset[str], message: str) -> None:
    refused = sorted(reserved.intersection(keys))
    if refused:
        raise InvalidParameterValue(message.format(", ".join(map(repr, refused))))
