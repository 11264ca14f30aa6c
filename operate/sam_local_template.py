"""``python -m operate.sam_local_template TEMPLATE``: writes a copy of the template that
`sam local` can serve, and prints its path. The SAM CLI supports neither a function's alias in an
integration nor an authorizer behind a condition. So the copy names the functions themselves and
requires no login. It has no REST API: the HTTP API has the same routes, and `sam local` cannot
stream.

The copy also declares environment variables that `--env-vars` may then set, so that all functions
can run without AWS.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from local import cloudformation

NAME: Final = "local-api.json"
SETTABLE: Final = ("AWS_ENDPOINT_URL", "ARTIFACT_FOLDER", "SYSTEM_TABLES_FOLDER")
_REST_API: Final = "AWS::ApiGateway::"
_URI: Final = (
    "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/"
    "${%s.Arn}/invocations"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes a copy of the given template, which `sam local` can serve, beside it. Returns 0, or 1
    if there is no template."""
    parser = argparse.ArgumentParser(
        prog="python -m operate.sam_local_template", description=__doc__
    )
    parser.add_argument(
        "template", type=Path, help="template of a build: .aws-sam/build/template.yaml"
    )
    built: Path = parser.parse_args(arguments).template
    if not built.is_file():
        print(f"operate.sam_local_template: there is no {built}; run `make build`", file=sys.stderr)
        return 1
    written = built.with_name(NAME)
    written.write_text(json.dumps(servable(cloudformation.load(built)), indent=1))
    print(written)
    return 0


def servable(template: dict[str, Any]) -> dict[str, Any]:
    """Returns a copy of the product's template that `sam local` can serve."""
    copy: dict[str, Any] = json.loads(json.dumps(template))
    variables = copy["Globals"]["Function"]["Environment"]["Variables"]
    variables |= dict.fromkeys(SETTABLE, "")
    resources: dict[str, Any] = copy["Resources"]
    for name in [
        name for name, definition in resources.items() if _is_left_out(definition["Type"])
    ]:
        del resources[name]
    for resource in resources.values():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::ApiGatewayV2::Route":
            properties.pop("AuthorizerId", None)
            properties["AuthorizationType"] = "NONE"
        elif resource["Type"] == "AWS::ApiGatewayV2::Integration":
            function = properties["IntegrationUri"]["Ref"].removesuffix(".Alias")
            properties["IntegrationUri"] = {"Fn::Sub": _URI % function}
    return copy


def _is_left_out(resource_type: str) -> bool:
    return resource_type.startswith(_REST_API) or resource_type == "AWS::ApiGatewayV2::Authorizer"


if __name__ == "__main__":
    sys.exit(main())
