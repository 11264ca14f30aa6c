"""Which tests run on the same worker: those of a file, whose fixtures are shared, and of files that
share a server or a deployment which takes long to start.

pytest-xdist's own groups rely on an attribute of items that pytest 9.2 no longer has.
"""

from __future__ import annotations

from typing import Any, Final

from xdist.scheduler import LoadScopeScheduling

SHARING: Final = {
    "tests/rehearsal/": "rehearsal",
    "tests/differential/test_auth_": "login",
    "tests/browser/": "browser",
}
"""Groups by how the paths of their files begin."""
FIRST: Final = (*SHARING, "tests/e2e/", "tests/local/", "tests/differential/")
"""What takes long begins first, so that no worker waits for another at the end."""


def group_of(nodeid: str) -> str:
    path = nodeid.partition("::")[0]
    return next((name for start, name in SHARING.items() if path.startswith(start)), path)


def place_of(nodeid: str) -> int:
    """Where a test stands in the order of those of all folders."""
    starts = (place for place, start in enumerate(FIRST) if nodeid.startswith(start))
    return next(starts, len(FIRST))


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives groups to workers as a whole, in the order in which tests were collected."""

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
