"""The commands by which a person decides: findings, pause, resume, pilot."""
