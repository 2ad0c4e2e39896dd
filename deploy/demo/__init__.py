"""The demonstration mail system: James's tables, a mail workload with faults, a full comparison."""
