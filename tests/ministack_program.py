"""MiniStack with three corrections: python ministack_program.py, with the interpreter of its
environment.

CloudFormation ends the names that it makes with random characters, so two stacks of one name in two
regions share nothing. MiniStack ends them with a digest of stack and resource, without the region:
IAM's roles and S3's buckets, which are the whole account's, would be shared by both stacks and go
with the first that is deleted. Here the digest knows the region.

API Gateway hands the cookies of a request to functions and authorizers as a list of their own
(payload format 2.0). MiniStack leaves them in the headers.

Each process of a function unpacks its code and its layers, which all functions share, into a folder
of its own, which stays when MiniStack is killed. Here a file is unpacked once, the processes share
the folder, and all is below the working directory, which whoever started MiniStack removes.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import threading
import zipfile
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from ministack.app import main
from ministack.core import lambda_runtime
from ministack.core.responses import get_region
from ministack.services import lambda_svc
from ministack.services.cloudformation import provisioners

_DIGEST = 13
"""Characters of the digest at the end of a name."""

_named = provisioners._physical_name


def _named_by_region(stack_name: str, logical_id: str, **options: Any) -> str:
    name: str = _named(stack_name, logical_id, **options)
    digest = hashlib.sha256(f"{get_region()}:{name}".encode()).hexdigest()[:_DIGEST]
    return name[:-_DIGEST] + (digest if options.get("lowercase") else digest.upper())


_executed = lambda_svc._execute_function_with_config_scope


def _executed_with_cookies(function: dict[str, Any], event: Any) -> Any:
    if isinstance(event, dict) and event.get("version") == "2.0" and "rawPath" in event:
        headers = dict(event["headers"])
        cookies = headers.pop("cookie", "")
        pairs = [pair.strip() for pair in cookies.split(";") if pair.strip()]
        event = {**event, "headers": headers, **({"cookies": pairs} if pairs else {})}
    return _executed(function, event)


class _UnpackedOnce(zipfile.ZipFile):
    """A file of a function, whose folder becomes a link to what it holds."""

    # One for each file: a function must not wait until the largest layer of another is unpacked.
    _locks: ClassVar[defaultdict[str, threading.Lock]] = defaultdict(threading.Lock)

    def namelist(self) -> list[str]:
        """No names. For each name MiniStack would resolve the path three times, in each process, to
        refuse names that leave the folder; extractall below writes none of these outside either."""
        return []

    def extractall(self, path: Any = None, *_options: Any, **_named: Any) -> None:
        assert self.filename is not None
        # The directory at the end has the name, the length and a checksum of each file.
        with Path(self.filename).open("rb") as file:
            file.seek(self.start_dir)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        unpacked = Path.cwd() / "unpacked" / digest
        with self._locks[digest]:
            if not unpacked.exists():
                beside = unpacked.with_suffix(".new")
                super().extractall(beside, super().namelist())
                beside.rename(unpacked)
        Path(path).rmdir()
        Path(path).symlink_to(unpacked)
        Path(self.filename).unlink()  # up to 227 MB for each process


def _made_here(*, prefix: str) -> str:
    return tempfile.mkdtemp(prefix=prefix, dir=Path.cwd())


if __name__ == "__main__":
    lambda_runtime.tempfile = SimpleNamespace(mkdtemp=_made_here)
    lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": _UnpackedOnce})
    lambda_svc._execute_function_with_config_scope = _executed_with_cookies
    provisioners._physical_name = _named_by_region
    sys.exit(main())
