"""What holds for every test: credentials that open nothing, no deadline on property tests, and
which tests share a worker."""

from __future__ import annotations

import atexit
import gc
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests import examples, long_tests, scheduling

# DynamoDB's documented example key: an accidental call to AWS itself is refused.
os.environ["AWS_ACCESS_KEY_ID"] = "AKIAIOSFODNN7EXAMPLE"
os.environ["AWS_SECRET_ACCESS_KEY"] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# Lines with metrics are written at any level, and would bury what failed.
os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
os.environ.setdefault("AWS_REGION", "us-east-1")
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ.setdefault("TABLE_NAME", "mlflow-under-test")
# Tests share two processors, and processes of queries are nice. What ends a query is tested with a
# limit of its own.
os.environ.setdefault("SYSTEM_TABLES_SECONDS", "30")
for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE"):
    os.environ.pop(name, None)

# Shared machines pause; a slow example, or one that is slowly drawn, is no wrong one.
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples.number_of(100),
)
# `make check` takes fewer examples.
settings.register_profile("check", settings.get_profile("default"), max_examples=15)
settings.load_profile("default")


_ROOT = Path(__file__).parents[1]
_PRODUCT = tuple(f"{_ROOT / folder}/" for folder in ("functions", "layers", "local", "operate"))


def _is_product(path: str) -> bool:
    """Whether hypothesis tries the numbers and texts that a module names. Each worker would look
    for them in all tests as well, which takes a tenth of its collection."""
    return path.startswith(_PRODUCT)


vars(providers)["is_local_module_file"] = _is_product


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return scheduling.workers()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.GroupScheduling:
    return scheduling.GroupScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    # The controller of parallel workers collects nothing, and never finishes a collection.
    if not session.config.getoption("numprocesses", None):
        gc.disable()  # what is imported and collected stays for good


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    # Else DuckDB's library would take what is left at the end for leaks. Not before pytest's last
    # collections of garbage, which would read all that was imported.
    atexit.register(gc.unfreeze)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (left_out if long_tests.is_left_out(item.nodeid) else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    groups = scheduling.in_order(item.nodeid for item in kept)
    places = {group: place for place, group in enumerate(groups)}
    items[:] = sorted(kept, key=lambda item: places[scheduling.group_of(item.nodeid)])
