"""Prints the routes that `sam local start-api` would serve from a template, and the function of
each, as JSON: python sam_routes.py TEMPLATE, with the interpreter of the SAM CLI's environment."""

from __future__ import annotations

import importlib
import json
import sys

if __name__ == "__main__":
    stacks = importlib.import_module("samcli.lib.providers.sam_stack_provider")
    apis = importlib.import_module("samcli.lib.providers.api_provider")
    parsed_stacks, _ = stacks.SamLocalStackProvider.get_stacks(
        sys.argv[1], parameter_overrides={"Authentication": "none"}
    )
    routes = apis.ApiProvider(parsed_stacks).api.routes
    listed = [[route.path, sorted(route.methods), route.function_name] for route in routes]
    sys.stdout.write(json.dumps(listed) + "\n")
