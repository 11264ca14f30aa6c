"""What Kubeflow's registry keeps: its own items, and its view of MLflow's."""
