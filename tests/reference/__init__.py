"""The plain oracle: docs/model.md a second time, with loops and Python integers only."""
