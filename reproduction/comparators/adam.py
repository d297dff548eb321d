r"""Adam (Kingma and Ba, 2015): gradient descent with running means of the gradient and of its square.

After step t with gradient g, the running means are :math:`m \leftarrow \beta_1 m + (1 - \beta_1) g` and
:math:`v \leftarrow \beta_2 v + (1 - \beta_2) g^2`, and the parameters move by

.. math:: -\eta\, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon} .
"""

from __future__ import annotations

from math import sqrt

from conformal_gp._compiled import compiled
from conformal_gp.types import Array

# β₁, β₂ and ε, as published.
DECAY, SQUARE_DECAY, SAFE_DIVISION = 0.9, 0.999, 1e-8


@compiled(error_model="numpy")
def adam_step(
    parameters: Array, gradient: Array, mean: Array, square: Array, step: int, step_size: float
) -> None:  # pragma: no cover
    """Change parameters and running means in place.

    Parameters
    ----------
    parameters, gradient : contiguous ndarrays of one shape
        Where the optimiser is, and the gradient there.
    mean, square : contiguous ndarrays of the same shape
        Running means of the gradient and of its square, zero before the first step.
    step : int
        Number of the step, from 1.
    step_size : float
        Step size η.
    """
    x, g, m, v = parameters.ravel(), gradient.ravel(), mean.ravel(), square.ravel()
    move = step_size / (1.0 - DECAY**step)
    correction = 1.0 / sqrt(1.0 - SQUARE_DECAY**step)
    for i in range(x.size):
        m[i] = DECAY * m[i] + (1.0 - DECAY) * g[i]
        v[i] = SQUARE_DECAY * v[i] + (1.0 - SQUARE_DECAY) * g[i] * g[i]
        x[i] -= move * m[i] / (correction * sqrt(v[i]) + SAFE_DIVISION)
