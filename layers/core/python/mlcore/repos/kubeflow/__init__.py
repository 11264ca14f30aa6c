"""The items that only Kubeflow's registry has, and its view of MLflow's items."""
