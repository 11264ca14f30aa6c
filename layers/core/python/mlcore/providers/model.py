"""A model provider's model with decrypted credentials, ready to be called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Model(NamedTuple):
    """An AI model at a model provider, with decrypted credentials. Exists only during one call of
    the model; its printed form shows no credential."""

    provider: str
    name: str
    secret: Mapping[str, str]
    """Credentials, by the provider's names for them."""
    auth_config: Mapping[str, str]
    """Settings that are not secret, such as ``api_base``, region and login mode."""

    def __repr__(self) -> str:
        return f"Model({self.provider}/{self.name})"
