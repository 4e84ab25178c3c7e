"""Measurements against peers, side by side in one run; results are ratios of medians."""
