"""Low-rank full conformal prediction on many rows: cost against size, its choices measured, rivals side by side."""
