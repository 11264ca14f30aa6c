"""``python -m tests.dead_code``: fails if the product defines a function, method, class or property
that the product itself never names; what only tests call is dead as well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from vulture import Vulture

ROOT: Final = Path(__file__).parents[1]
PRODUCT: Final = (
    *("functions", "layers/core/python", "layers/tables/python"),
    *("local", "operate", "distribution", "dashboards"),
)
KINDS: Final = ("class", "function", "method", "property")
"""Of definitions. Fields and constants are left out: many name what clients may send."""

NAMED_ELSEWHERE: Final = {
    "layers/core/python/mlcore/policies/*": "routes name policies by text; test_policies.py",
    "layers/tables/python/mltables/dialect/sql_generator.py:*_sql": "sqlglot",
    "layers/tables/python/mltables/dialect/parser.py:Parser": "sqlglot",
    "layers/tables/python/mltables/dialect/parser.py:_pivot_column_names": "sqlglot",
    "local/http/request_parser.py:on_*": "httptools",
    "*:do_POST": "http.server",
    "*:log_message": "http.server",
    "*:redirect_request": "urllib.request",
    "layers/core/python/mlcore/models/base.py:Meta": "pynamodb",
    "layers/core/python/mlcore/models/base.py:_get_connection": "pynamodb",
    "layers/core/python/mlcore/queues.py:*_message*": "called by the name of the operation",
    "functions/traces/conventions/*:*_of_events": "called by the name of the field",
    "functions/skills/search.py:*_order": "called by the name of the field",
    "layers/core/python/mlcore/entities/registry.py:source_path": "called by the name of the field",
    "layers/core/python/mlcore/scorer_cage/*": "scorers of users",
    "distribution/mlflow_serverless/*": "programs of users",
}
"""Who uses what the product does not name: patterns of files and names, and the reason."""


def unused() -> Iterator[tuple[str, str]]:
    """Yields file and name of each definition that nothing names, and its line."""
    vulture = Vulture()
    vulture.scavenge([str(ROOT / folder) for folder in PRODUCT])
    for item in vulture.get_unused_code(min_confidence=60):
        if item.typ in KINDS:
            path = Path(item.filename).resolve().relative_to(ROOT)
            yield f"{path}:{item.name}", f"{path}:{item.first_lineno}: {item.typ} {item.name}"


def main() -> int:
    """Prints what is dead, and which patterns match nothing. Returns the exit status."""
    definitions = dict(unused())
    matched = {
        name: [pattern for pattern in NAMED_ELSEWHERE if fnmatchcase(name, pattern)]
        for name in definitions
    }
    dead = [f"{line} is never used" for name, line in definitions.items() if not matched[name]]
    used = {pattern for patterns in matched.values() for pattern in patterns}
    stale = [
        f"the pattern {pattern} matches nothing"
        for pattern in NAMED_ELSEWHERE
        if pattern not in used
    ]
    sys.stdout.writelines(f"{line}\n" for line in (*dead, *stale))
    return 1 if dead or stale else 0


if __name__ == "__main__":
    sys.exit(main())
