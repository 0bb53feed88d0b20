"""Execute jobs and keep their records: workers, scheduling, storage."""
