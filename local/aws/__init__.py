"""Local stand-ins for services of AWS: S3 (files), KMS (keys) and SQS (queues)."""
