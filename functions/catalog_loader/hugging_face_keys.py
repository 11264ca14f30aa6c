"""API keys for the Hugging Face Hub: from a secret of Secrets Manager, or from the environment."""

from __future__ import annotations

import json
import os
import re
from typing import Final

from catalog_loader.field_checks import InvalidField
from mlcore import secrets
from mlcore.errors import TemporarilyUnavailable

SECRET: Final = "CATALOG_SECRET"  # noqa: S105 -- a name
"""Environment: the secret's ARN. The secret is one key, or a JSON object of keys by name."""

DEFAULT: Final = "HF_API_KEY"

_NAME: Final = re.compile(r"(?!AWS_)[A-Z][A-Z0-9_]{0,99}")


class NoKey(Exception):
    """Raised if the secret with the API keys of the Hugging Face Hub cannot be read or parsed; the
    message explains why."""


def api_key(name: str = "") -> str | None:
    """Returns the API key for the Hugging Face Hub that has this name; None if the default key is
    missing: then only public models can be read.

    Args:
        name: the name that a source has; empty for the default key, which may be missing.

    Raises:
        InvalidField: the name is invalid, or is not the default one and there is no such key.
        NoKey: the secret cannot be read.
    """
    if name and not _NAME.fullmatch(name):
        raise InvalidField(f"apiKeyEnvVar: {name[:100]!r} is not the name of a key")
    wanted = name or DEFAULT
    key = _stored().get(wanted) or os.environ.get(wanted)
    if name and name != DEFAULT and not key:
        raise InvalidField(f"apiKeyEnvVar: there is no key {name!r}")
    return key or None


def _stored() -> dict[str, str]:
    """Returns the keys in the secret, by name. The secret is read each time, so that a changed key
    takes effect at once."""
    secret = os.environ.get(SECRET)
    if not secret:
        return {}
    try:
        text = secrets.read_from_secrets_manager(secret)
    except TemporarilyUnavailable as error:
        raise NoKey(str(error)) from None
    if not text.lstrip().startswith("{"):
        return {DEFAULT: text.strip()}
    try:
        keys = json.loads(text)
    except ValueError:
        raise NoKey("the secret of the catalog is not JSON") from None
    return {str(name): str(key) for name, key in keys.items()}
