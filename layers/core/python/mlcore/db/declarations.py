"""PynamoDB's classes for models and readers; the only place that imports them.

PynamoDB's connection brings botocore's clients and sessions with it, a third of a cold start, and
nothing here connects through it (:mod:`mlcore.db.transport` does). So while PynamoDB is imported,
stand-ins take the places of the modules that it asks for; afterwards whoever asks gets botocore's
own, and PynamoDB too when it opens a session after all.
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
    from botocore.session import get_session  # noqa: PLC0415 -- what the stand-ins are to avoid

    return get_session(*arguments, **named)


_STAND_INS: Final[dict[str, dict[str, Any]]] = {
    "botocore.client": {"ClientError": ClientError},
    "botocore.config": {},
    "botocore.session": {"Session": object, "get_session": _get_session},
    # Has annotations of botocore's private parts and no code.
    "pynamodb.connection._botocore_private": {"BotocoreBaseClientPrivate": object},
}
"""What PynamoDB takes from a module while it is imported."""


@contextmanager
def _stand_ins() -> Iterator[None]:
    absent = [name for name in _STAND_INS if name not in sys.modules]
    for name in absent:
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(_STAND_INS[name])
        if name.startswith("botocore."):
            setattr(botocore, name.removeprefix("botocore."), module)
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
            if name.startswith("botocore."):
                delattr(botocore, name.removeprefix("botocore."))


with _stand_ins():
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
