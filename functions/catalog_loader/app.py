"""The Lambda function ``catalog_loader`` loads the model catalog: on a schedule, on a change of the
catalog's YAML files, and when an administrator asks for it. ``catalog_loader`` also answers
requests that preview a source of the catalog, because a preview reads YAML files, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from catalog_loader import loading
from catalog_loader.file_store import files
from catalog_loader.preview import parse, preview
from mlcore.http import PlainRoute, Request, lambda_handler, nothing
from mlcore.http.kubeflow_responses import Versions
from mlcore.observability import logger

PREFIX: Final = "/api/model_catalog"
_OLD: Final = f"{PREFIX}/v1alpha1"
_V1: Final = f"{PREFIX}/v1"
_VERSIONS: Final = Versions({_OLD: _V1})


def reload(_message: None, request: Request) -> dict[str, Any]:
    """Loads the model and MCP catalog whether or not its files have changed. Kubeflow has no such
    route; it is our extension."""
    return loading.load(files(), force=True)._asdict()


PLAIN_ROUTES: Final = tuple(
    PlainRoute(
        "POST",
        f"{version}{path}",
        parser,
        _VERSIONS.answering(function),
        "shared_rules.administrators",
    )
    for version in (_V1, _OLD)
    for path, parser, function in (
        ("/sources/preview", parse, preview),
        ("/sources/reload", nothing, reload),
    )
)

_answer: Final = lambda_handler((), PLAIN_ROUTES, _VERSIONS.error_format())


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Answers an HTTP event: a preview of a source of the model catalog, or a forced load. Any
    other event (a schedule, a change of a file) loads the catalog if its files have changed or one
    of its sources on the Hugging Face Hub is due."""
    if "requestContext" in event:
        return _answer(dict(event), context)
    report = loading.load(files())
    if report.changed:
        logger.info("the catalog was loaded", extra=report._asdict())
    return report._asdict()
