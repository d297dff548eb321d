"""Saved models: one file, read without running any code from it.

A model file is a zip archive of a JSON document, the training rows as ``.npy`` arrays, and their SHA-256 sums. It holds
what was learnt, not the matrices that follow from it: loading costs one factorisation, or, in a low-rank model,
two passes over the rows, and nothing is tuned again.
"""

from conformal_gp.persistence.archive import ModelFileError
from conformal_gp.persistence.model import load_columns, load_model, save_model
from conformal_gp.persistence.trusted import TRUSTED_TYPES

__all__ = ["TRUSTED_TYPES", "ModelFileError", "load_columns", "load_model", "save_model"]
