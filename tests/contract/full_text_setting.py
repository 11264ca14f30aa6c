"""Which texts of an experiment full text holds."""

from __future__ import annotations

import json

from mlcore.db import keys
from mlcore.search import text_fields
from tests.contract.conftest import Store, forget


def setting(store: Store, fields: list[str] | None) -> None:
    """Writes ``CFG#fts_fields``; None: as if nobody had."""
    primary_key = keys.config(text_fields.SETTING)
    key = {"PK": {"S": primary_key.pk}, "SK": {"S": primary_key.sk}}
    if fields is None:
        store.direct.delete_item(TableName=store.table, Key=key)
    else:
        value = {"type": {"S": "config"}, "value": {"S": json.dumps(fields)}}
        store.direct.put_item(TableName=store.table, Item={**key, **value})
    forget()
