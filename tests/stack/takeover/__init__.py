"""What commit 258deba left in its keyspace and its topics, and how it is put back (README.md)."""
