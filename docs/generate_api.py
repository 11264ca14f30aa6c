"""Writes docs/api.md from the route tables of functions/*/app.py; ``--check`` only compares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from mlcore.http import Rpc
from mlcore.http.routes import OLDEST, Route

PATH: Final = Path(__file__).with_name("api.md")
FUNCTIONS: Final = PATH.parents[1] / "functions"

INTRODUCTION: Final = f"""\
# Routes

`make docs` generates this page from the tables in `functions/*/app.py`; a test keeps the page true.

A path that begins with an API version, such as `/2.0/`, is served below `/api` and, for the web UI,
also below `/ajax-api`. Paths marked *UI* are served below `/ajax-api` only. A path that begins with
no API version, such as `/health`, is served as the tables show it. A route marked *preview* is also
served under `/2.0/preview/mlflow/…`, which clients before 2.0 call. A request to a path without a
route gets 404.

- **Function** is the Python function that answers, as module and name below `functions/`.
- **Who may** is the policy that decides who may call the route, a function of `mlcore/policies`.
  In the column "Who may", the word `follows` stands before the function that changes grants after
  a call of the route has succeeded, and `hides` before the function of
  `mlcore/policies/hidden_references` that removes from the answer what the caller may not read.
- **Cost** is the number of sequential round trips to DynamoDB for the smallest sensible request,
  without authentication (for routes of users: for an administrator), and with filled caches (for
  routes of the function `catalog`: with empty ones). A process of the server needs one more round
  trip the first time that it reads a certain run, trace or logged model, and one more to log to a
  run to which it has not written yet, or another process wrote last. Authentication adds round
  trips ([decision 17](adr/0017-login.md)). `tests/contract/test_route_costs.py` counts the
  round trips of a request to each route whose *Cost* is not empty. Read and write units are the
  most capacity units that a typical call may use; `tests/contract/test_budgets.py` checks them.
- **MLflow** is the first version of MLflow whose server has the route, if it is later than
  {OLDEST}, and the last version, if newer ones have dropped it; *ours* is a route that MLflow's
  server never had, *Kubeflow* one of Kubeflow's model registry or model catalog.
- **Otherwise** says how the answer differs from the answer of MLflow's server, in addition to
  [the rule about errors](architecture.md#errors).
"""


KUBEFLOW: Final = ("/api/model_registry/", "/api/model_catalog/", "/api/mcp_catalog/", "/readyz/")
"""Prefixes of the paths of routes that are Kubeflow's."""


def markdown() -> str:
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for domain in sorted(path.parent.name for path in FUNCTIONS.glob("*/app.py")):
        app = import_module(f"{domain}.app")
        routes: Sequence[Route] = (*getattr(app, "RPCS", ()), *getattr(app, "PLAIN_ROUTES", ()))
        if not routes:
            continue
        summary = " ".join(str(app.__doc__).split())
        yield f"## {domain}\n\n{summary}\n"
        yield "| Route | Function | Who may | Cost | MLflow | Otherwise |"
        yield "|---|---|---|---|---|---|"
        twins = [
            (route.method, route.twin_of)
            for route in routes
            if isinstance(route, Rpc) and route.twin_of
        ]
        for route in routes:
            if not (isinstance(route, Rpc) and route.twin_of):
                yield _row(route, previewed=(route.method, route.path) in twins)
        yield ""


def _row(route: Route, *, previewed: bool) -> str:
    path = f"{route.method} `{route.path}`"
    if isinstance(route, Rpc) and route.ajax_only:
        path += " *UI*"
    if previewed:
        path += " *preview*"
    policy = f"`{route.policy}`"
    if route.follow:
        policy += f", follows `{route.follow}`"
    if route.hides:
        policy += f", hides `{route.hides}`"
    cells = (
        path,
        f"`{_name(route.function)}`",
        policy,
        _cost(route),
        _mlflow(route),
        route.deviation,
    )
    return "| " + " | ".join(cells) + " |"


def _name(function: Callable[..., Any]) -> str:
    """Returns module and name of a function; of the function that a partial calls."""
    while isinstance(function, partial):
        function = function.func
    return f"{function.__module__}.{function.__qualname__}"


def _cost(route: Route) -> str:
    if route.cost is None:
        return ""
    parts = [str(route.cost)]
    if isinstance(route, Rpc):
        units = (("read", route.read_units), ("write", route.write_units))
        parts += [f"{number:g} {word} units" for word, number in units if number is not None]
    return ", ".join(parts)


def _mlflow(route: Route) -> str:
    if route.path.startswith(KUBEFLOW):
        return "Kubeflow"
    if not route.since:
        return "ours"
    since = "" if route.since == OLDEST else route.since
    return f"{since} to {route.until}".strip() if route.until else since


def main(arguments: list[str]) -> int:
    """Writes the file, or says whether it is as it should be."""
    if "--check" in arguments:
        return int(PATH.read_text(encoding="utf-8") != markdown())
    PATH.write_text(markdown(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
