"""Exact Gaussian process regression: covariances, likelihood, tuning, posterior."""
