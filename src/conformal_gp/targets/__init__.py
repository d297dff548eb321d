"""Targets: transformation, bounds, and the local scale of their residuals."""
