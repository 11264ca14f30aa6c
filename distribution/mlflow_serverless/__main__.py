"""The command line of the installed product: starts the server, or runs an administration command
of ``operate``."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

PRODUCT = Path(__file__).resolve().parent / "product"
FOLDERS = (".", "layers/core/python", "layers/tables/python")
"""The folders with modules of the product, relative to :data:`PRODUCT`."""

HELP = """\
usage: mlflow-serverless [serve] [OPTIONS]      serve the product on this machine
       mlflow-serverless COMMAND [OPTIONS]      work on its data; COMMAND --help lists the options

examples:
  mlflow-serverless                             on http://127.0.0.1:5000, data in the home folder
  mlflow-serverless --port 8080 --ephemeral     delete the data at the end
  mlflow-serverless --data DIR --auth           another data folder, with a login
  mlflow-serverless import --from http://old:5000
  mlflow-serverless export --to mlflow.db --artifacts mlartifacts
  mlflow-serverless deploy dev
  mlflow-serverless sql "SELECT status, count(*) FROM system.mlflow.runs_latest GROUP BY 1"

commands:
  import, compare    copy from or compare with another MLflow server, its data, or Kubeflow
  export             copy into a database and a folder of MLflow's own server (needs mlflow)
  sql, report, alert, system-tables              query runs and metrics
  gc, config                                     permanently remove deleted things; settings
  create-admin, keys, rights, audit              first administrator; API keys; who may and did what
  erase-user         remove a person from the table, the system tables and the audit
  verify, reindex, sizes, replay                 check and repair derived items
  deploy             build and deploy a stage to AWS (needs the SAM CLI, make, Python 3.13)
  doctor             use a running server as a team would, and report faults

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
        code: int = import_module("operate.admin_commands").main(arguments)
        return code
    if arguments[:1] == ["serve"]:
        del sys.argv[1]
    import_module("local.__main__").run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
