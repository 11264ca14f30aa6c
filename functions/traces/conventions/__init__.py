"""What spans mean: MLflow's names, those of other instrumentations, usage, costs and previews."""
