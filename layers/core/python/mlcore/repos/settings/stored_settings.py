"""The settings of a deployment, which administrators change while it runs: ``CFG#`` items, each
with a JSON value."""

from __future__ import annotations

import json
from typing import Any

from mlcore import errors
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.limits.settings import check_setting
from mlcore.models.settings import Config
from mlcore.repos.settings import cached_setting, system_tables_readers


def get(key: str) -> Any:
    """Returns the value of a setting of the deployment. Raises ResourceDoesNotExist if it is not
    set."""
    item = table.get(keys.config(key))
    if item is None:
        raise errors.ResourceDoesNotExist(f"The setting '{key}' is not set")
    return json.loads(Config.of(item).value)


def find_all() -> dict[str, Any]:
    """Returns all settings of the deployment, by key; one Query per MB."""
    items = table.query_all(keys.CONFIG.pk.text, prefix=keys.config_prefix())
    configs = [Config.of(item) for item in items]
    return {config.key: json.loads(config.value) for config in configs}


def put(key: str, value: Any) -> None:
    """Writes a setting; all processes use the new value within a minute.

    Raises:
        InvalidParameterValue: the value breaks a rule of its setting.
        ResourceDoesNotExist: the value names a workspace that does not exist.
    """
    check_setting(key, value)
    if key == system_tables_readers.SETTING:
        system_tables_readers.check_workspaces(name for names in value.values() for name in names)
    item_key = keys.config(key)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    item = Config(
        PK=item_key.pk, SK=item_key.sk, key=key, value=text, updated_at=now_ms(), version=1
    )
    table.put(item.serialize())
    cached_setting.forget(key)


def delete(key: str) -> None:
    """Resets a setting of the deployment to its default. Idempotent."""
    table.delete(keys.config(key))
    cached_setting.forget(key)
