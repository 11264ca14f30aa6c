"""The only module that imports PynamoDB's classes; it exports those that models and readers use.

PynamoDB imports botocore's clients and sessions, which take a third of a cold start, for
connections that this project does not use (:mod:`mlcore.db.transport` connects). So stub modules
replace botocore's while PynamoDB is imported. Afterwards every import gets botocore's modules
again. This workaround can go when PynamoDB imports without its connections.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

import botocore
from botocore.exceptions import ClientError


def _get_session(*arguments: Any, **named: Any) -> Any:
    from botocore.session import get_session  # noqa: PLC0415 -- the import that the stubs avoid

    return get_session(*arguments, **named)


_STUBS: Final[dict[str, dict[str, Any]]] = {
    "botocore.client": {"ClientError": ClientError},
    "botocore.config": {},
    "botocore.session": {"Session": object, "get_session": _get_session},
    # Contains only annotations.
    "pynamodb.connection._botocore_private": {"BotocoreBaseClientPrivate": object},
}
"""The names that PynamoDB imports, by module."""


@contextmanager
def _stub_modules() -> Iterator[None]:
    absent = [name for name in _STUBS if name not in sys.modules]
    for name in absent:
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(_STUBS[name])
        if name.startswith("botocore."):
            setattr(botocore, name.removeprefix("botocore."), module)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
            if name.startswith("botocore."):
                delattr(botocore, name.removeprefix("botocore."))


with _stub_modules():
    from pynamodb.attributes import Attribute
    from pynamodb.connection import Connection, TableConnection
    from pynamodb.connection.base import MetaTable
    from pynamodb.exceptions import AttributeNullError
    from pynamodb.indexes import GlobalSecondaryIndex, KeysOnlyProjection, LocalSecondaryIndex
    from pynamodb.models import Model

__all__ = [
    "Attribute",
    "AttributeNullError",
    "Connection",
    "GlobalSecondaryIndex",
    "KeysOnlyProjection",
    "LocalSecondaryIndex",
    "MetaTable",
    "Model",
    "TableConnection",
]
