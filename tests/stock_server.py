"""MLflow's server, cheaper to start and to log in to: python -m tests.stock_server OPTIONS"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import mlflow
from mlflow.store.db import utils
from mlflow.utils import crypto
from werkzeug import security

from operate import stock_server

EMPTY: Final = Path(__file__).parents[1] / f".cache/mlflow-{mlflow.__version__}.db"
"""A database as MLflow makes it, with each of its migrations, which takes a second."""
_STORE: Final = "--backend-store-uri"

# Passwords and keys that guard nothing: a hash that is slow to guess would take a tenth of a second
# for each user, each first login and each secret.
vars(crypto)["PBKDF2_ITERATIONS"] = 1
security.generate_password_hash.__defaults__ = ("pbkdf2:sha256:1", 16)


def make_database(options: Sequence[str]) -> None:
    """Copies the empty database to where a server with these options would make one."""
    place = Path(options[options.index(_STORE) + 1].removeprefix("sqlite:///"))
    if place.exists():
        return
    if not EMPTY.exists():
        EMPTY.parent.mkdir(exist_ok=True)
        beside = EMPTY.with_suffix(f".{os.getpid()}")
        engine = utils.create_sqlalchemy_engine(f"sqlite:///{beside}")
        utils._initialize_tables(engine)
        engine.dispose()
        beside.replace(EMPTY)
    shutil.copyfile(EMPTY, place)


if __name__ == "__main__":
    make_database(sys.argv[1:])
    # SQLAlchemy makes much for each request, and what is imported stays for good.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    stock_server.run(sys.argv[1:])
