"""``python -m local.admin config``: reads and writes a deployment's settings. The core layer
validates them."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from local import program_name


def run(action: str, key: str | None, value: str | None) -> int:
    """Performs an action (``list``, ``get``, ``set`` or ``unset``) on a setting. ``value`` is JSON.
    Returns 0 on success, otherwise 1."""
    config, errors = (
        import_module("mlcore.repos.settings.stored_settings"),
        import_module("mlcore.errors"),
    )
    try:
        if action == "list":
            for name, setting_and_value in config.find_all().items():
                print(f"{name} {json.dumps(setting_and_value, ensure_ascii=False)}")
        elif action == "get":
            print(json.dumps(config.get(key), ensure_ascii=False))
        elif action == "unset":
            config.delete(key)
        else:
            config.put(key, json.loads(value or ""))
        if action in ("set", "unset") and key == "sign_in_roles":
            import_module("mlcore.repos.users.claim_roles").apply_to_groups()
    except ValueError:
        print(program_name.complaint(f"{value!r} is no JSON"), file=sys.stderr)
        return 1
    except errors.MlflowError as error:
        print(program_name.complaint(error.message), file=sys.stderr)
        return 1
    return 0
