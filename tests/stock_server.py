"""MLflow's server, cheaper to start and to log in to: python -m tests.stock_server OPTIONS"""

from __future__ import annotations

import gc
import sys

from mlflow.utils import crypto
from werkzeug import security

from operate import stock_server

# Passwords and keys that guard nothing: a hash that is slow to guess would take a tenth of a second
# for each user, each first login and each secret.
vars(crypto)["PBKDF2_ITERATIONS"] = 1
security.generate_password_hash.__defaults__ = ("pbkdf2:sha256:1", 16)


if __name__ == "__main__":
    # SQLAlchemy makes much for each request, and what is imported stays for good.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    stock_server.run(sys.argv[1:])
