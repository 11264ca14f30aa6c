"""Rules about the settings of a deployment, which are stored in its table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from mlcore.entities import gateway_limits
from mlcore.errors import InvalidParameterValue
from mlcore.limits import sign_in
from mlcore.limits.gateway_limits import check_gateway_limits
from mlcore.prices import setting as prices
from mlcore.redaction import setting as redaction
from mlcore.search import text_fields

TTL_KINDS: Final = (
    "deleted_runs",
    "deleted_experiments",
    "archived_models",
    "archived_versions",
    "traces",
    "metric_history",
)
"""Kinds of data that ``ttl_policy`` can expire."""

_DURATION: Final = re.compile("([1-9][0-9]{0,8})([mhd])")
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400}
_FIELD: Final = re.compile(
    r"((tags|params|traces\.tags|traces\.metadata)\.(\*|.{1,250})|traces\.content)", re.DOTALL
)
IAM_USERS: Final = "iam_users"
MAX_IAM_USERS_BYTES: Final = 300_000
"""The setting must fit into one DynamoDB item."""
MAX_FTS_FIELDS: Final = 100
MAX_PRICES_LENGTH: Final = 200_000
"""Characters of JSON; the setting must fit into one DynamoDB item."""
_MAX_NAME_LENGTH: Final = 250
_HIGHEST_PRICE: Final = 1_000_000_000


def seconds_of(duration: Any) -> int | None:
    """Returns the seconds of a duration such as ``30m``, ``12h`` or ``7d``; None for anything
    else."""
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else None


def check_setting(key: str, value: Any) -> None:
    """Checks that a setting of the deployment exists and accepts the value. Raises
    InvalidParameterValue otherwise."""
    check = _CHECKS.get(key)
    if check is None:
        raise InvalidParameterValue(
            f"There is no setting '{key}'. Settings are: {', '.join(sorted(_CHECKS))}."
        )
    check(value)


def _check_ttl_policy(value: Any) -> None:
    if not isinstance(value, dict):
        raise InvalidParameterValue(
            "The setting 'ttl_policy' must be an object that maps kinds of data to durations."
        )
    for kind, duration in value.items():
        if kind not in TTL_KINDS:
            raise InvalidParameterValue(
                f"The setting 'ttl_policy' has no kind '{kind}'. Kinds are: {', '.join(TTL_KINDS)}."
            )
        if duration is not None and seconds_of(duration) is None:
            raise InvalidParameterValue(
                f"The duration of '{kind}' must be null or in the form `<int><unit>`, where unit "
                "is one of 'm', 'h', or 'd' (for example '30d')."
            )


def _check_fts_fields(value: Any) -> None:
    known = {f"attributes.{name}" for name in text_fields.ATTRIBUTES} | {text_fields.NAME}
    if not isinstance(value, list) or len(value) > MAX_FTS_FIELDS:
        raise InvalidParameterValue(
            f"The setting 'fts_fields' must be a list of at most {MAX_FTS_FIELDS} fields."
        )
    for field in value:
        if not isinstance(field, str) or not (field in known or _FIELD.fullmatch(field)):
            raise InvalidParameterValue(
                f"The setting 'fts_fields' cannot have {field!r}: a field is 'tags.<key>', "
                "'params.<key>', 'traces.tags.<key>', 'traces.metadata.<key>' (or '*' for a key), "
                f"'traces.content' or one of {', '.join(sorted(known))}."
            )


def _check_llm_prices(value: Any) -> None:
    providers = value.items() if isinstance(value, dict) else ()
    if not isinstance(value, dict) or not all(isinstance(models, dict) for _, models in providers):
        raise InvalidParameterValue(
            "The setting 'llm_prices' must be an object of providers, each an object of models."
        )
    for provider, models in providers:
        if not _is_name(provider) or provider != provider.lower():
            raise InvalidParameterValue(
                f"The setting 'llm_prices' cannot have the provider {provider!r}: a provider is a "
                "name in lower case, or '*' for all."
            )
        for model, price in models.items():
            _check_price(provider, model, price)
    if len(json.dumps(value)) > MAX_PRICES_LENGTH:
        raise InvalidParameterValue(
            f"The setting 'llm_prices' can have at most {MAX_PRICES_LENGTH} characters."
        )


def _check_price(provider: str, model: str, price: Any) -> None:
    if not _is_name(model):
        raise InvalidParameterValue(f"The setting 'llm_prices' cannot have the model {model!r}.")
    if (
        not isinstance(price, dict)
        or not price.keys() <= set(prices.FIELDS)
        or not all(map(_is_price, (price.get(field) for field in prices.REQUIRED)))
        or not all(map(_is_price, price.values()))
    ):
        raise InvalidParameterValue(
            f"The price of '{model}' by '{provider}' must be an object of US dollars, with "
            f"{' and '.join(prices.REQUIRED)}, and optionally {', '.join(prices.FIELDS[2:])}."
        )


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MAX_NAME_LENGTH and text.isprintable()


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= _HIGHEST_PRICE
    )


def _check_readers(value: Any) -> None:
    """Checks the setting ``system_tables_readers``: it maps each user to the workspaces whose rows
    of the system tables the user may read, or to ``["*"]``."""
    lists = value.values() if isinstance(value, dict) else [None]
    if not all(
        isinstance(workspaces, list) and all(isinstance(name, str) for name in workspaces)
        for workspaces in lists
    ):
        raise InvalidParameterValue(
            "The setting 'system_tables_readers' must be an object of lists: for each user the "
            'names of the workspaces whose rows they may read, or "*".'
        )


def _check_iam_users(value: Any) -> None:
    """Checks the setting ``iam_users``: it maps ARNs of IAM users and roles to user names."""
    if not isinstance(value, dict) or not all(
        arn.startswith("arn:") and isinstance(name, str) and _is_name(name)
        for arn, name in value.items()
    ):
        raise InvalidParameterValue(
            "The setting 'iam_users' must be an object that maps ARNs of users and roles to user "
            "names."
        )
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_IAM_USERS_BYTES:
        raise InvalidParameterValue(
            f"The setting 'iam_users' can have at most {MAX_IAM_USERS_BYTES} bytes."
        )


def _check_redaction(value: Any) -> None:
    from mlcore.limits import redaction as limits  # noqa: PLC0415 -- rarely set

    limits.check_redaction(value)


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    IAM_USERS: _check_iam_users,
    "system_tables_readers": _check_readers,
    sign_in.ISSUERS: sign_in.check_issuers,
    sign_in.ROLES: sign_in.check_roles,
    gateway_limits.SETTING: check_gateway_limits,
    "ttl_policy": _check_ttl_policy,
    text_fields.SETTING: _check_fts_fields,
    prices.SETTING: _check_llm_prices,
    redaction.SETTING: _check_redaction,
}
