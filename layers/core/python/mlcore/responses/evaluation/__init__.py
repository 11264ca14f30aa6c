"""What quality is judged with, in the shape of MLflow's JSON."""
