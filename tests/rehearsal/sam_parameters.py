"""Prints, as JSON, the parameters that the SAM CLI reads from its arguments:
python sam_parameters.py NAME=VALUE …, with the interpreter of SAM's environment."""

from __future__ import annotations

import importlib
import json
import sys

if __name__ == "__main__":
    kind = importlib.import_module("samcli.cli.types").CfnParameterOverridesType
    read = {}
    for argument in sys.argv[1:]:
        read.update(kind().convert((argument,), None, None))
    sys.stdout.write(json.dumps(read))
