"""What operators see: metrics, logs, lag, clocks, nodes."""
