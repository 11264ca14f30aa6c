"""What holds for every test: credentials that open nothing, and no deadline on property tests."""

from __future__ import annotations

import os

from hypothesis import settings

# DynamoDB's documented example key: an accidental call to AWS itself is refused.
os.environ["AWS_ACCESS_KEY_ID"] = "AKIAIOSFODNN7EXAMPLE"
os.environ["AWS_SECRET_ACCESS_KEY"] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
# Lines with metrics are written at any level, and would bury what failed.
os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
os.environ.setdefault("AWS_REGION", "us-east-1")
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ.setdefault("TABLE_NAME", "mlflow-under-test")
for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE"):
    os.environ.pop(name, None)

# Shared machines pause; a slow example is no wrong one.
settings.register_profile("default", deadline=None)
settings.load_profile("default")
