"""Parses the command line of the local server. Other programs start it with these options, so the
options are an interface."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from local import program_name
from local.version import VERSION
from mlcore.mlflow_version import MLFLOW_VERSION

LOCAL_ALERT_MINUTES: Final = "5"
"""The interval of evaluating alerts on a laptop, where it costs nothing."""
PUBLICATION_MINUTES: Final = "SystemTablesMinutes"


class Options(NamedTuple):
    """The parsed options of the command line. ``data`` is None for an ephemeral data folder, which
    is removed at the end.
    """

    host: str
    port: int
    data: Path | None
    indexer: bool
    template: Path
    auth: bool = False
    workspaces: bool = False
    chosen: tuple[tuple[str, str], ...] = ()
    """Values for parameters of template.yaml, as (name, value)."""
    catalog: Path | None = None
    """Folder of the model catalog's sources; None for the one in the data folder."""

    def parameters(self) -> dict[str, str]:
        """Returns the parameters of template.yaml that the local server's options set, as values
        by name."""
        return {
            "Authentication": "basic" if self.auth else "none",
            "Workspaces": "true" if self.workspaces else "false",
            "SystemTablesAlertMinutes": LOCAL_ALERT_MINUTES,
            PUBLICATION_MINUTES: "1",
            **dict(self.chosen),
        }

    def publication_seconds(self) -> float:
        """Returns the interval of publishing the system tables, the parameter SystemTablesMinutes,
        in seconds."""
        return 60.0 * int(self.parameters()[PUBLICATION_MINUTES])


def default_data_folder() -> Path:
    """Returns the data folder that is used without an option: ``mlflow-serverless`` in the user's
    folder for data ($XDG_DATA_HOME)."""
    home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(home) if home else Path.home() / ".local/share") / "mlflow-serverless"


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Parses the local server's command line. Ends the process with code 2 if it is wrong, with
    code 0 after ``--help`` or ``--version``."""
    parser = argparse.ArgumentParser(
        prog=program_name.server(), description="Serve the product on this machine."
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"mlflow-serverless {VERSION} (MLflow {MLFLOW_VERSION})",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=5000, help="port to listen on, 0 for a free one (%(default)s)"
    )
    folder_options = parser.add_mutually_exclusive_group()
    folder_options.add_argument(
        "--data", type=Path, metavar="DIR", help=f"data folder ({default_data_folder()})"
    )
    folder_options.add_argument(
        "--ephemeral", action="store_true", help="delete the data when the runner stops"
    )
    parser.add_argument(
        "--auth", action="store_true", help="require a login (basic authentication)"
    )
    parser.add_argument("--workspaces", action="store_true", help="enable workspaces")
    parser.add_argument(
        "--parameter",
        type=_parameter,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of template.yaml, such as Authentication=oidc",
    )
    parser.add_argument(
        "--catalog",
        type=Path,
        metavar="DIR",
        help="folder with the sources of the model catalog (default: catalog in the data folder)",
    )
    parser.add_argument("--no-indexer", action="store_true", help="do not run the indexer")
    parser.add_argument(
        "--template",
        type=Path,
        default=Path(__file__).resolve().parent.parent / "template.yaml",
        help=argparse.SUPPRESS,
    )
    given = parser.parse_args(arguments)
    if not 0 <= given.port <= 65535:
        parser.error("--port is a number from 0 to 65535")
    if given.catalog and not given.catalog.expanduser().is_dir():
        parser.error(f"--catalog: there is no folder {given.catalog}")
    data = None if given.ephemeral else (given.data or default_data_folder())
    return Options(
        host=given.host,
        port=given.port,
        data=data.expanduser().resolve() if data else None,
        indexer=not given.no_indexer,
        template=given.template.resolve(),
        auth=given.auth,
        workspaces=given.workspaces,
        chosen=tuple(given.parameter),
        catalog=given.catalog.expanduser().resolve() if given.catalog else None,
    )


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if name == PUBLICATION_MINUTES and not re.fullmatch("[1-9]|[1-5][0-9]", value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of minutes from 1 to 59")
    return name, value
