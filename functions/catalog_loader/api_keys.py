"""Keys of services that hold models: from a secret of Secrets Manager, or from the environment."""

from __future__ import annotations

import json
import os
import re
from typing import Final

from catalog_loader.fields import Wrong
from mlcore import secrets
from mlcore.errors import TemporarilyUnavailable

SECRET: Final = "CATALOG_SECRET"  # noqa: S105 -- a name
"""Environment: the ARN of the secret, which is a key, or a JSON object of keys by name."""

DEFAULT: Final = "HF_API_KEY"

_NAME: Final = re.compile(r"(?!AWS_)[A-Z][A-Z0-9_]{0,99}")


class NoKey(Exception):
    """The secret cannot be read now; the message says why."""


def api_key(name: str = "") -> str | None:
    """The key of a name; None if there is none, so that what is open to all is read.

    Args:
        name: as a source gives it; empty for the default, which need not be there.

    Raises:
        Wrong: no key can have the name, or a source asks for one that is not there.
        NoKey: whether it is there cannot be told.
    """
    if name and not _NAME.fullmatch(name):
        raise Wrong(f"apiKeyEnvVar: {name[:100]!r} is no name of a key")
    wanted = name or DEFAULT
    found = _stored().get(wanted) or os.environ.get(wanted)
    if name and name != DEFAULT and not found:
        raise Wrong(f"apiKeyEnvVar: there is no key {name!r}")
    return found or None


def _stored() -> dict[str, str]:
    """The keys of the secret. It is read each time: a key that was changed counts at once."""
    secret = os.environ.get(SECRET)
    if not secret:
        return {}
    try:
        text = secrets.stored(secret)
    except TemporarilyUnavailable as error:
        raise NoKey(str(error)) from None
    if not text.lstrip().startswith("{"):
        return {DEFAULT: text.strip()}
    try:
        keys = json.loads(text)
    except ValueError:
        raise NoKey("the secret of the catalog is no JSON") from None
    return {str(name): str(key) for name, key in keys.items()}
