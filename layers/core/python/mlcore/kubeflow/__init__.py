"""Kubeflow's model registry as plain values: its entities, their JSON, its filters and pages; knows
neither storage nor MLflow."""
