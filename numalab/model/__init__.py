"""The rules of automatic NUMA balancing over arrays, one module per rule; docs/model.md has them exactly."""
