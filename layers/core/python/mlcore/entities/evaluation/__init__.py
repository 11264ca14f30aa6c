"""What quality is judged with."""
