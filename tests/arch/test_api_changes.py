"""CloudFormation changes the API one resource at a time. API Gateway refuses changes of one API at
the same time ("Unable to complete operation due to concurrent modification")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.arch import project

RESOURCES = project.template()["Resources"]
KINDS = tuple(
    f"AWS::ApiGatewayV2::{noun}" for noun in ("Integration", "Authorizer", "Route", "Stage")
)
CHANGES = {name for name, resource in RESOURCES.items() if resource["Type"] in KINDS}


def _named(value: Any) -> Iterator[str]:
    """Logical ids to which a part of a resource refers, in any way that makes a dependency."""
    if isinstance(value, list):
        for inner in value:
            yield from _named(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "Ref":
                yield inner
            elif key == "Fn::GetAtt":
                yield inner[0]
            elif key == "Fn::Sub":
                text, *_ = [inner] if isinstance(inner, str) else inner
                yield from (name.split(".")[0] for name in re.findall(r"\$\{(\w+[.\w]*)\}", text))
            yield from _named(inner)


def _needed(name: str) -> set[str]:
    resource = RESOURCES[name]
    declared = resource.get("DependsOn", [])
    named = {
        *_named(resource["Properties"]),
        *([declared] if isinstance(declared, str) else declared),
    }
    return named & CHANGES - {name}


def test_the_api_is_changed_one_resource_at_a_time() -> None:
    """At each moment exactly one resource is ready to be made; the stage, which deploys, last."""
    needs = {name: _needed(name) for name in CHANGES}
    made: list[str] = []
    while len(made) < len(CHANGES):
        ready = [name for name in CHANGES if name not in made and needs[name] <= set(made)]
        assert len(ready) == 1, f"after {made[-1:]}: {sorted(ready)}"
        made += ready
    assert RESOURCES[made[-1]]["Type"] == "AWS::ApiGatewayV2::Stage"
    assert len(made) > 100
