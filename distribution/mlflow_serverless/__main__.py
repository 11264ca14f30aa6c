"""The command line of the installed product: starts the server, or runs an administration command
of ``operate``."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

PRODUCT = Path(__file__).resolve().parent / "product"
FOLDERS = (".", "layers/core/python", "layers/tables/python")
"""Where modules of the product lie, below :data:`PRODUCT`."""

HELP = """\
usage: mlflow-serverless [serve] [OPTIONS]      serve the product on this machine
       mlflow-serverless COMMAND [OPTIONS]      work on its data; --help tells more of each

examples:
  mlflow-serverless                             on http://127.0.0.1:5000, data in the home folder
  mlflow-serverless --port 8080 --ephemeral     keep nothing
  mlflow-serverless --data DIR --auth           another folder, with a login
  mlflow-serverless import --from http://old:5000
  mlflow-serverless export --to mlflow.db --artifacts mlartifacts
  mlflow-serverless sql "SELECT status, count(*) FROM system.mlflow.runs_latest GROUP BY 1"

commands:
  import, compare    from and with another MLflow server, its database, or a Kubeflow registry
  export             into a database and a folder of MLflow's own server (needs mlflow)
  sql, report, alert, system-tables              query runs and metrics
  gc, config                                     remove deleted things; settings
  create-admin, keys, rights                     first login; API keys; who may do what
  verify, reindex, sizes, replay                 look after derived items
  doctor             use a running server as a team would, and say what is wrong

`mlflow-serverless serve --help` lists the options of the server.
"""


def main() -> int:
    """Runs the command line. Returns the exit code."""
    folders = [str(PRODUCT / folder) for folder in FOLDERS]
    sys.path[:0] = folders
    # For the processes that the product starts.
    inherited = [path for path in (os.environ.get("PYTHONPATH"),) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *inherited])
    os.environ["MLFLOW_SERVERLESS_PROGRAM"] = "mlflow-serverless"
    arguments = sys.argv[1:]
    if arguments[:1] in (["--help"], ["-h"], ["help"]):
        print(HELP, end="")
        return 0
    if arguments and not arguments[0].startswith("-") and arguments[0] != "serve":
        code: int = import_module("operate.admin").main(arguments)
        return code
    if arguments[:1] == ["serve"]:
        del sys.argv[1]
    import_module("local.__main__").run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
