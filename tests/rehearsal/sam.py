"""The SAM CLI in a third of its time: python sam.py ARGUMENTS, with the interpreter of its
environment.

It reads and writes a template a dozen times in Python, and compresses a quarter of a gigabyte.
Here libyaml does the first, and what is uploaded to this machine stays as large as it is. What it
builds and deploys is the same.
"""

from __future__ import annotations

import importlib
import zipfile
from typing import Any

import yaml


class _Plain(zipfile.ZipFile):
    def writestr(self, *arguments: Any, **options: Any) -> None:
        super().writestr(*arguments, **{**options, "compress_type": zipfile.ZIP_STORED})


if __name__ == "__main__":
    vars(yaml).update(SafeLoader=yaml.CSafeLoader, SafeDumper=yaml.CSafeDumper)
    vars(zipfile)["ZipFile"] = _Plain
    importlib.import_module("samcli.cli.main").cli(prog_name="sam")
