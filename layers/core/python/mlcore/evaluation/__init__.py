"""What quality is judged with: evaluation datasets and their records, scorers, label schemas,
review queues and issues, as plain values with their rules; reads and writes nothing."""
