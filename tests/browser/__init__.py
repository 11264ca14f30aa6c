"""MLflow's web UI in a real Chromium, against the local runner."""
