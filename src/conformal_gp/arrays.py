"""Array types that the whole package shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers."""
Mask = NDArray[np.bool_]
"""True for the rows or entries that are meant."""
Indices = NDArray[np.int64]
"""Row numbers."""
