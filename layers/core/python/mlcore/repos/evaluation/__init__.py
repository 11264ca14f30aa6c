"""What quality is judged with: datasets, scorers, label schemas, review queues, issues."""
