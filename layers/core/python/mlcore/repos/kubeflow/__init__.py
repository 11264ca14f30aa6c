"""Stores what only Kubeflow's model registry has, and shows MLflow's entities as Kubeflow's."""
