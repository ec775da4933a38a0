"""Figures: functions that take results and return a matplotlib Figure."""
