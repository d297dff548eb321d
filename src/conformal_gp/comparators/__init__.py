"""Methods that conformal Gaussian process regression is compared with, each a regressor with ``predict_interval``."""
