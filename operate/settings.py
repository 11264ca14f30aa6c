"""``python -m local.admin config``: reads and writes the settings of a deployment; checks nothing
itself."""

from __future__ import annotations

import json
import sys
from importlib import import_module


def run(action: str, key: str | None, value: str | None) -> int:
    """0 when it could be done. ``value`` is JSON."""
    config, errors = import_module("mlcore.repos.settings.config"), import_module("mlcore.errors")
    try:
        if action == "list":
            for name, found in config.find_all().items():
                print(f"{name} {json.dumps(found, ensure_ascii=False)}")
        elif action == "get":
            print(json.dumps(config.get(key), ensure_ascii=False))
        elif action == "unset":
            config.delete(key)
        else:
            config.put(key, json.loads(value or ""))
    except ValueError:
        print(f"local.admin: {value!r} is no JSON", file=sys.stderr)
        return 1
    except errors.MlflowError as error:
        print(f"local.admin: {error.message}", file=sys.stderr)
        return 1
    return 0
