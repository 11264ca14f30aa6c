"""Kubeflow's model registry as plain values: entities, their JSON, filters and pages. Uses neither
storage nor MLflow."""
