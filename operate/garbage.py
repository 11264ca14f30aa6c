"""``python -m local.admin gc``: removes what was deleted for good, with its files; the product
decides what that is."""

from __future__ import annotations

import os
import re
import sys
import time
from importlib import import_module

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_SECONDS = (86_400, 3600, 60, 1)


def seconds_of(duration: str) -> int:
    """Of a duration such as ``30d`` or ``1d12h``, as ``mlflow gc`` takes it.

    Raises:
        ValueError: it is none.
    """
    found = _DURATION.fullmatch(duration)
    if not duration or found is None:
        raise ValueError(f"{duration!r} is no duration such as 30d, 12h or 1d12h")
    return sum(int(part or 0) * each for part, each in zip(found.groups(), _SECONDS, strict=True))


def run(older_than: int, experiment_id: str | None) -> int:
    """0 when all of it is gone. May be killed and run again."""
    if not os.environ.get("ARTIFACT_BUCKET") and not os.environ.get("ARTIFACT_FOLDER"):
        print(
            "local.admin: name the files with ARTIFACT_BUCKET or ARTIFACT_FOLDER", file=sys.stderr
        )
        return 1
    garbage, errors = import_module("mlcore.repos.removal.garbage"), import_module("mlcore.errors")
    before = int((time.time() - older_than) * 1000)
    removed = failed = kept = 0
    try:
        for found in garbage.find(before + 1, experiment_id):
            try:
                went = garbage.remove(found)
            except errors.MlflowError as error:
                failed += 1
                print(f"{found.kind} {found.item_id}: {error.message}", file=sys.stderr)
            else:
                removed += 1
                print(f"{found.kind} {found.item_id} of experiment {found.experiment_id} removed")
                if not went:
                    kept += 1
                    print("  files stay: something else that is there can name them")
    except errors.MlflowError as error:
        print(f"local.admin: {error.message}", file=sys.stderr)
        return 1
    print(f"{removed} removed, {failed} failed" + (f", {kept} left files" if kept else ""))
    return 1 if failed else 0
