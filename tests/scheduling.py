"""Which tests run on the same worker, and in which order: the files of a group share a server, a
browser, a deployment or clients that take long to start, and a file's own fixtures are made once.

pytest-xdist's own groups rely on an attribute of items that pytest 9.2 no longer has.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from xdist.scheduler import LoadScopeScheduling

_STOCK: Final = "stock"
SHARING: Final = {
    "tests/rehearsal/": "rehearsal",
    "tests/browser/": "browser",
    "tests/differential/test_auth_workspaces.py": "login in workspaces",
    "tests/differential/test_auth_": "login",
    "tests/differential/test_rest_no_crash.py": "a product that must not crash",
    **{
        f"tests/differential/test_{name}": _STOCK
        for name in (
            *("rest_", "trace_", "artifacts", "client_operations", "graphql", "http"),
            *("search_mcp_servers", "search_registry", "issue_detection"),
        )
    },
    # Each worker would import the same old clients.
    **{
        f"tests/e2e/test_{name}.py": "clients"
        for name in ("clients", "key_clients", "kubeflow", "login", "registry", "tokens")
    },
}
"""Groups by how the paths of their files begin; the first that fits counts."""

PARSING: Final = {
    f"tests/arch/test_{name}.py": "parsed sources"
    for name in ("docstrings", "sources", "one_reading", "process_cache")
}
"""Files that read all sources, which are parsed once for each worker that runs one of them."""

SAME_TABLES: Final = {
    f"tests/contract/test_{name}.py": tables
    for tables, names in {
        "tables with hidden rows": (
            *("sql_bounds", "sql_connections", "sql_hidden_rows", "sql_limits", "sql_processes"),
        ),
        "tables of spans": (
            *("aggregated_lists", "counted_columns", "counted_lists", "span_columns"),
            *("trace_metadata_columns", "unjoined_lists"),
        ),
    }.items()
    for name in names
}
"""Files that ask the same system tables, which each worker that runs one of them writes once."""

WAITING: Final = (
    *("tests/browser/", *SHARING, "tests/store/", "tests/e2e/", "tests/local/", "tests/cage/"),
    *("tests/operate/", "tests/differential/"),
)
"""Tests that mostly wait for a server, a client or a browser; the longest groups first."""
COMPUTING: Final = "tests/contract/"
"""Tests that take long and hardly wait. All others are short."""


def workers() -> int:
    """More than processors: much of a test's time is waiting for a server or a client."""
    return max(2, 2 * (os.cpu_count() or 1))


def group_of(nodeid: str) -> str:
    return _group_of_file(nodeid.partition("::")[0])


@functools.cache
def _group_of_file(path: str) -> str:
    groups = (SHARING | PARSING | SAME_TABLES).items()
    return next((name for start, name in groups if path.startswith(start)), path)


def in_order(nodeids: Iterable[str]) -> list[str]:
    """Returns the groups of tests in the order in which workers take them. Groups that wait and
    groups that compute alternate, so that the processors are busy from the beginning. Short ones
    come last, so that no worker waits for another at the end."""
    paths = dict.fromkeys(nodeid.partition("::")[0] for nodeid in nodeids)
    places = {group_of(path): _place(path) for path in paths}
    waiting = sorted(
        (group for group in places if places[group] < len(WAITING)), key=places.__getitem__
    )
    computing = [group for group in places if places[group] == len(WAITING)]
    shares = [
        (index / len(groups), group)
        for groups in (waiting, computing)
        for index, group in enumerate(groups)
    ]
    short = [group for group in places if places[group] > len(WAITING)]
    return [*(group for _, group in sorted(shares, key=itemgetter(0))), *short]


def _place(nodeid: str) -> int:
    """Returns the place of a test's folder or file in ``WAITING``; of computing tests the one after
    it, of short tests the next."""
    starts = (*WAITING, COMPUTING, "")
    return next(place for place, start in enumerate(starts) if nodeid.startswith(start))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives groups to workers as a whole, in the order in which tests were collected."""

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def remove_node(self, node: Any) -> str | None:
        """A worker has ended. What it ran when it died has failed, and is not tried again; others
        run what it had not begun."""
        if self.collection is None:  # whoever takes its place is waited for
            self.registered_collections.pop(node, None)
        left = [
            (scope, [nodeid for nodeid, is_done in unit.items() if not is_done])
            for scope, unit in self.assigned_work.pop(node).items()
        ]
        waiting = [(scope, nodeids) for scope, nodeids in left if nodeids]
        if not waiting:
            return None
        died_in: str = waiting[0][1].pop(0)
        self.workqueue.update(
            {scope: dict.fromkeys(nodeids, False) for scope, nodeids in waiting if nodeids}
        )
        for other in self.assigned_work:
            self._reschedule(other)
        return died_in

    def add_node_collection(self, node: Any, collection: Any) -> None:
        super().add_node_collection(node, collection)
        if node not in self.registered_collections:  # it found other tests, and would wait for ever
            node.shutdown()

    def _reschedule(self, node: Any) -> None:
        """A worker that took the place of another begins when it knows the tests. It begins a test
        when it knows the next, or that there is none: one alone is not enough."""
        while node in self.registered_collections and not node.shutting_down:
            super()._reschedule(node)
            if self._pending_of(self.assigned_work[node]) > 1:
                return

    def _assign_work_unit(self, node: Any) -> None:
        """A worker may have died while the report of its last test was read: nothing can be sent to
        it. What it was given is given to others as soon as its end is noticed."""
        with contextlib.suppress(OSError):
            super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
