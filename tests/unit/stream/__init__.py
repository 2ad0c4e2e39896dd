"""The stream: batches, slices, workers, topics, sessions."""
