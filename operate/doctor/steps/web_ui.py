"""Checks the web UI's page and script, and that a function answers at the path of each route."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from local import environment
from local.template import read
from operate.doctor.api import ApiAnswer
from operate.doctor.checkup_state import Checkup, expect
from operate.doctor.outcome import LeftOut, Wrong

_TEMPLATE: Final = Path(__file__).resolve().parents[3] / "template.yaml"
_SCRIPT: Final = re.compile(r"""(?:src|href)=["']\.?/?(static-files/[^"']+\.(?:js|css))["']""")
_FILLED: Final = re.compile(r"\{[^}]+\}")
_ROOT: Final = "{root}"
_ROOTS: Final = ("api", "ajax-api")
"""The values of :data:`_ROOT` in routes. Behind CloudFront, other roots are paths of the UI."""
_OF_A_BUCKET: Final = (b"<Error>", b"<?xml")
_PROBE: Final = "/readyz/"
"""Kubeflow's probe asks the API itself; behind CloudFront this path is one of the UI's files."""
_WORKSPACES: Final = "/mlflow/workspaces"
_YEAR: Final = 31_536_000


def load(checkup: Checkup) -> str:
    """Checks that the UI's page and its first script are served, and that browsers may cache the
    script for a year. Returns the result as a text. Raises LeftOut if the address serves the API
    only, and Wrong if a check fails."""
    page = checkup.api.call("GET", "/")
    if page.status == 404:
        raise LeftOut("this address serves the API alone: check UiUrl too")
    expect(page.status == 200, f"GET /: {page.status} {page.text[:200]}")
    expect("text/html" in page.headers.get("content-type", ""), "GET / is no HTML")
    name = _SCRIPT.search(page.text)
    if name is None:
        raise Wrong("the page names no script: run `make publish-ui`")
    script = checkup.api.call("GET", f"/{name[1]}")
    expect(script.status == 200, f"GET /{name[1]}: {script.status}")
    kept = script.headers.get("cache-control", "")
    expect(f"max-age={_YEAR}" in kept, f"/{name[1]} has cache-control {kept!r}")
    checkup.facts["ui"] = True
    return f"the page and {name[1]}"


def reach_functions(checkup: Checkup) -> str:
    """Checks that a Lambda function answers a request to each route, and not a bucket or API
    Gateway. Returns the result as a text; raises Wrong, which lists the other routes."""
    behind_ui = checkup.facts.get("ui") is True
    paths = sorted(
        _FILLED.sub("doctor", path.replace(_ROOT, root))
        for path in set(_route_paths())
        for root in (_ROOTS if _ROOT in path else _ROOTS[:1])
        if not (behind_ui and path.startswith(_PROBE))
    )
    lost = []
    for path in paths:
        answer = checkup.api.call("GET", path)
        if _fails(path, answer) or _is_foreign(answer):
            lost.append(f"{path} ({answer.status})")
    expect(not lost, f"{len(lost)} of {len(paths)} routes do not reach a function: {lost}")
    return f"{len(paths)} routes reach their functions"


def _route_paths() -> list[str]:
    template = read(_TEMPLATE, "doctor", environment.region(), {})
    keys = (route.key.partition(" ")[2] for route in template.routes)
    return [path for path in keys if path.startswith("/")]


def _fails(path: str, answer: ApiAnswer) -> bool:
    """Returns whether an answer is a server error. The 503 of workspace routes does not count: they
    answer so if workspaces are switched off, as on MLflow's server."""
    switched_off = answer.status == 503 and _WORKSPACES in path
    return answer.status >= 500 and not switched_off


def _is_foreign(answer: ApiAnswer) -> bool:
    """Returns whether an answer comes from the bucket behind CloudFront or from API Gateway itself,
    instead of a function."""
    if answer.content.startswith(_OF_A_BUCKET):
        return True
    return answer.content.strip() in (b'{"message":"Not Found"}', b'{"message": "Not Found"}')
