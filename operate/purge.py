"""``python -m local.admin gc``: permanently removes soft-deleted experiments, runs and logged
models, with their files."""

from __future__ import annotations

import os
import re
import sys
import time
from importlib import import_module

from local import program_name

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_SECONDS = (86_400, 3600, 60, 1)


def parse_duration(duration: str) -> int:
    """Returns the seconds of a duration such as ``30d`` or ``1d12h``, as ``mlflow gc`` takes it.
    Raises ValueError for any other text."""
    match = _DURATION.fullmatch(duration)
    if not duration or match is None:
        raise ValueError(f"{duration!r} is no duration such as 30d, 12h or 1d12h")
    return sum(int(part or 0) * each for part, each in zip(match.groups(), _SECONDS, strict=True))


def run(older_than: int, experiment_id: str | None) -> int:
    """Permanently removes the experiments, runs and logged models (of one experiment, or all) that
    were deleted at least ``older_than`` seconds ago, and prints each. Returns 0 if nothing failed,
    otherwise 1. After an interruption the call can be repeated."""
    if not os.environ.get("ARTIFACT_BUCKET") and not os.environ.get("ARTIFACT_FOLDER"):
        message = "name the files with ARTIFACT_BUCKET or ARTIFACT_FOLDER"
        print(program_name.complaint(message), file=sys.stderr)
        return 1
    garbage, errors = import_module("mlcore.repos.removal.garbage"), import_module("mlcore.errors")
    restored = import_module("mlcore.repos.removal.permanent_deletion").NoLongerDeleted
    before = int((time.time() - older_than) * 1000)
    removed = failed = kept = 0
    try:
        for item in garbage.find(before + 1, experiment_id):
            try:
                went = garbage.remove(item)
            except restored:
                continue
            except errors.MlflowError as error:
                failed += 1
                print(f"{item.kind} {item.item_id}: {error.message}", file=sys.stderr)
            else:
                removed += 1
                print(f"{item.kind} {item.item_id} of experiment {item.experiment_id} removed")
                if not went:
                    kept += 1
                    print("  its files stay: something else may refer to them")
    except errors.MlflowError as error:
        print(program_name.complaint(error.message), file=sys.stderr)
        return 1
    print(f"{removed} removed, {failed} failed" + (f", {kept} of these left files" if kept else ""))
    return 1 if failed else 0
