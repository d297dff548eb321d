"""Adam (Kingma and Ba, 2015): gradient descent with running means of the gradient and of its square."""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array

# β₁, β₂ and ε, as published.
DECAY, SQUARE_DECAY, SAFE_DIVISION = 0.9, 0.999, 1e-8


class Adam:
    r"""The running means of parameters of some shape, and the steps that follow from them.

    After step t with gradient g, they are :math:`m \leftarrow \beta_1 m + (1 - \beta_1) g` and
    :math:`v \leftarrow \beta_2 v + (1 - \beta_2) g^2`, and the parameters move by

    .. math:: -\eta\, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon} .
    """

    def __init__(self, shape: tuple[int, ...]):
        self._mean, self._square = np.zeros(shape), np.zeros(shape)
        self.n_steps = 0

    def step(self, parameters: Array, gradient: Array, step_size: float) -> None:
        """Change the parameters in place."""
        self.n_steps += 1
        self._mean *= DECAY
        self._mean += (1.0 - DECAY) * gradient
        self._square *= SQUARE_DECAY
        self._square += (1.0 - SQUARE_DECAY) * gradient * gradient
        move = step_size / (1.0 - DECAY**self.n_steps)
        correction = 1.0 / np.sqrt(1.0 - SQUARE_DECAY**self.n_steps)
        parameters -= move * self._mean / (correction * np.sqrt(self._square) + SAFE_DIVISION)
