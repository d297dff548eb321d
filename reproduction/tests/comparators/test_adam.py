"""Adam against its published formula."""

import numpy as np

from reproduction.comparators.adam import adam_step


def test_steps_are_the_published_ones():
    rng = np.random.default_rng(0)
    found, expected = np.ones((2, 3)), np.ones((2, 3))
    mean, square = np.zeros((2, 3)), np.zeros((2, 3))
    gradients = rng.normal(size=(5, 2, 3))
    for step, gradient in enumerate(gradients, start=1):
        adam_step(found, gradient, mean, square, step, 0.1)
        past = np.arange(step)[::-1][:, None, None]
        m = np.sum(0.1 * 0.9**past * gradients[:step], axis=0) / (1 - 0.9**step)
        v = np.sum(0.001 * 0.999**past * gradients[:step] ** 2, axis=0) / (1 - 0.999**step)
        expected -= 0.1 * m / (np.sqrt(v) + 1e-8)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_first_step_has_the_step_size():
    found = np.zeros(2)
    adam_step(found, np.array([1e-3, -50.0]), np.zeros(2), np.zeros(2), 1, 0.01)
    np.testing.assert_allclose(found, [-0.01, 0.01], rtol=1e-4)
