"""Reads a CloudFormation template and resolves its intrinsic functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import yaml

from local.template_definitions import TemplateError

_SUBSTITUTION = re.compile(r"\$\{([^!][^}]*)\}")
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

NO_VALUE = object()
"""The value of ``AWS::NoValue``; a property with this value is removed."""


class _Loader(_LOADER):  # type: ignore[misc]
    """A SafeLoader that reads short forms such as ``!Ref`` as their long forms and leaves dates as
    text."""


def _intrinsic(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)


def load(path: Path) -> dict[str, Any]:
    """Returns the template as plain data, with intrinsic functions in their long form. Raises
    TemplateError if the file is missing or is not a template."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateError(f"{path}: {error.strerror}") from error
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
    except yaml.YAMLError as error:
        raise TemplateError(f"{path}: {error}") from error
    if not isinstance(document, dict) or "Resources" not in document:
        raise TemplateError(f"{path}: not a CloudFormation template")
    return document


class Resolver:
    """Replaces the intrinsic functions of a template by values, as CloudFormation does in a
    deployment. ``parameters`` override the template's defaults. ``physical`` maps logical ids to
    what ``Ref`` returns; a resource without an entry is named by its logical id. ``Fn::GetAtt``
    returns an ARN with the attribute and the name.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        parameters: Mapping[str, str] | None = None,
        physical: Mapping[str, str] | None = None,
        region: str = "us-east-1",
        stack: str = "local",
    ) -> None:
        self._document = document
        self._physical = dict(physical or {})
        self._conditions: dict[str, bool] = {}
        self._values: dict[str, Any] = {
            "AWS::Region": region,
            "AWS::AccountId": "000000000000",
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": stack,
            "AWS::StackId": f"arn:aws:cloudformation:{region}:000000000000:stack/{stack}/"
            f"{uuid5(NAMESPACE_URL, region + stack)}",
            "AWS::NotificationARNs": [],
            "AWS::NoValue": NO_VALUE,
        }
        for name, parameter in document.get("Parameters", {}).items():
            value = (parameters or {}).get(name, parameter.get("Default", ""))
            if isinstance(value, str) and parameter.get("Type", "").startswith(
                ("CommaDelimitedList", "List<")
            ):
                value = [part.strip() for part in value.split(",") if part.strip()]
            self._values[name] = value

    def resolve(self, value: Any) -> Any:
        """Returns a value of the template with every intrinsic function in it replaced."""
        if isinstance(value, list):
            items = (self.resolve(item) for item in value)
            return [item for item in items if item is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name == "Ref":
                return self._ref(argument)
            if name == "Condition" and isinstance(argument, str):
                return self.condition(argument)
            if isinstance(name, str) and name.startswith("Fn::"):
                return self._function(name[4:], argument)
        resolved = ((key, self.resolve(item)) for key, item in value.items())
        return {key: item for key, item in resolved if item is not NO_VALUE}

    def condition(self, name: str) -> bool:
        """Returns whether the CloudFormation template's condition with this name holds. Raises
        TemplateError if the template does not declare it."""
        if name not in self._conditions:
            try:
                expression = self._document["Conditions"][name]
            except KeyError:
                raise TemplateError(f"condition {name} is not declared") from None
            self._conditions[name] = bool(self.resolve(expression))
        return self._conditions[name]

    def _ref(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        return self._physical.get(name, name)

    def _text(self, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def _sub(self, argument: Any) -> str:
        text, variables = argument if isinstance(argument, list) else (argument, {})

        def replace(match: re.Match[str]) -> str:
            name = match.group(1).strip()
            if name in variables:
                return self._text(self.resolve(variables[name]))
            resource, _, attribute = name.partition(".")
            return self._text(
                self._attribute(resource, attribute) if attribute else self._ref(name)
            )

        return _SUBSTITUTION.sub(replace, text).replace("${!", "${")

    def _attribute(self, resource: str, attribute: str) -> str:
        name = self._physical.get(resource, resource)
        return f"arn:aws:local:{self._values['AWS::Region']}:{attribute}:{name}"

    def _function(self, name: str, argument: Any) -> Any:  # noqa: PLR0912 - one branch a function
        if name == "Sub":
            return self._sub(argument)
        if name == "GetAtt":
            return self._attribute(str(argument[0]), self._text(self.resolve(argument[1])))
        if name == "If":
            chosen = argument[1] if self.condition(argument[0]) else argument[2]
            return self.resolve(chosen)
        if name == "FindInMap":
            keys = [self.resolve(part) for part in argument[:3]]
            try:
                value = self._document["Mappings"][keys[0]][keys[1]][keys[2]]
            except KeyError:
                raise TemplateError(f"Fn::FindInMap {keys}: no such entry") from None
            return self.resolve(value)
        arguments = self.resolve(argument)
        if name == "Join":
            return self._text(arguments[0]).join(self._text(part) for part in arguments[1])
        if name == "Split":
            return arguments[1].split(arguments[0])
        if name == "Select":
            return arguments[1][int(arguments[0])]
        if name == "Equals":
            return self._text(arguments[0]) == self._text(arguments[1])
        if name == "Not":
            return not arguments[0]
        if name == "And":
            return all(arguments)
        if name == "Or":
            return any(arguments)
        if name == "GetAZs":
            return [f"{self._values['AWS::Region']}a"]
        raise TemplateError(f"the local runner does not know Fn::{name}")
