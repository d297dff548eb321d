r"""Gaussian processes on few rows at many settings of their hyperparameters, compiled.

A descent inside a small bag looks at thousands of settings. Each takes a tenth of a millisecond, so that the time
between calls of compiled functions would be most of the whole. Here all that the descent asks for is compiled
together: covariances, their factor, the mean basis seen through it, slopes, and what a test row and a row that is set
aside add. The formulas are those of :mod:`conformal_gp.gp.posterior` and :mod:`conformal_gp.gp.slopes`.
"""

from __future__ import annotations

import math

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.gp.hyperparameters import UNIT, minus_log_density
from conformal_gp.gp.noise import spiked_penalty, weight_of
from conformal_gp.gp.slopes import beside, slopes_and_trace
from conformal_gp.gp.stationary import fill
from conformal_gp.gp.whitened_basis import ALONE, add_to, add_unexplained, dot, explain_labels, leave_out_rows, whiten
from conformal_gp.gp.work import (
    ALPHA,
    COLUMN,
    DIAGONAL,
    LABELS,
    LOG_DETERMINANT,
    MEAN,
    N_NUMBERS,
    N_VECTORS,
    NOISE,
    NOISE_SLOPE,
    QUADRATIC,
    ROW_NOISE,
    TARGET,
    TEST_ROW,
    VARIANCE,
    VISITED,
    Work,
    hashed,
    put,
)
from conformal_gp.types import Array, Rows

# Sums may be taken in any order, several terms at a time.
_SUMS = {"reassoc", "contract"}


@compiled(error_model="numpy")
def slot_of(w: Work, point: Rows) -> int:  # pragma: no cover
    """The slot of a point, which takes one if it has none."""
    place = hashed(point) & (w.table.size - 1)
    while w.table[place] >= 0:
        slot, same = w.table[place], 0
        while same < point.size and w.points[slot, same] == point[same]:
            same += 1
        if same == point.size:
            return slot
        place = (place + 1) & (w.table.size - 1)
    slot = w.used[0]
    w.used[0] += 1
    w.table[place] = slot
    put(w.points[slot], point)
    _condition(w, slot)
    return slot


@compiled(error_model="numpy")
def length_scales(w: Work, point: Rows) -> Array:  # pragma: no cover
    """Length scales at a point, one for each input."""
    lengths = np.empty(w.n_inputs)
    for j in range(lengths.size):
        k = j if w.logarithms.size > 1 else 0
        lengths[j] = math.exp(w.logarithms[k] + UNIT * point[k])
    return lengths


@compiled(error_model="numpy")
def penalty(w: Work, point: Rows) -> tuple[float, Array]:  # pragma: no cover
    """Minus twice the log density of the prior, but for a constant, and its slopes, that of the noise included."""
    slopes, n, total = np.zeros(point.size), w.logarithms.size, 0.0
    if w.precision > 0.0:
        value, slope = minus_log_density(UNIT * point[:n], w.precision)
        total += 2.0 * value
        for j in range(n):
            slopes[j] = 2.0 * slope[j]
    for j in range(n, point.size - 1):
        added, slopes[j] = spiked_penalty(UNIT * point[j], w.features.shape[1])
        total += added
    return total, slopes


@compiled(error_model="numpy")
def row_noise(w: Work, slot: int, features: Array, row: int) -> tuple[float, float]:  # pragma: no cover
    """Noise variance of a row at a point, and its derivative in c'f."""
    total = 0.0
    for j in range(features.shape[1]):
        total += features[row, j] * UNIT * w.points[slot, w.logarithms.size + j]
    weight, slope = weight_of(total)
    return weight * w.numbers[slot, NOISE], slope * w.numbers[slot, NOISE]


@compiled(error_model="numpy", inline="always")
def _condition(w: Work, slot: int) -> None:  # pragma: no cover
    """Fill a slot with what is known of its point."""
    point, (l, d), p = w.points[slot, :-1], w.X.shape, w.H.shape[0]
    w.points[slot, VISITED] = 0
    numbers, vectors, L = w.numbers[slot], w.vectors[slot], w.factors[slot]
    numbers[NOISE] = w.noise * math.exp(2.0 * UNIT * point[-1])
    numbers[QUADRATIC], numbers[LOG_DETERMINANT] = 1.0, np.inf
    scaled, columns = w.X / length_scales(w, point), vectors[N_VECTORS + p :]
    for j in range(d):
        for i in range(l):
            columns[j, i] = scaled[i, j]
    L[:] = 0.0
    fill(scaled, columns, w.shape, w.scale, True, L)
    for i in range(l):
        vectors[ROW_NOISE, i], vectors[NOISE_SLOPE, i] = row_noise(w, slot, w.features, i)
        L[i, i] += vectors[ROW_NOISE, i]
    if not _factorise(L):
        return
    q, r, coefficients, alpha, numbers[QUADRATIC] = explain_labels(L, w.H, w.y)
    put(vectors[ALPHA], alpha)
    put(numbers[N_NUMBERS:], coefficients)
    for k in range(p):
        put(vectors[N_VECTORS + k], q[k])
        put(numbers[N_NUMBERS + p + p * k :], r[k])
    total = penalty(w, point)[0]
    for i in range(l):
        total += 2.0 * math.log(L[i, i])
    for k in range(p):
        total += 2.0 * math.log(abs(r[k, k]))
    numbers[LOG_DETERMINANT] = total


@compiled(error_model="numpy", fastmath=_SUMS)
def _factorise(A: Array) -> bool:  # pragma: no cover
    """Overwrite the lower triangle of a matrix with its Cholesky factor; False if there is none."""
    n = A.shape[0]
    for i in range(n):
        row = A[i]
        for j in range(0, i - 3, 4):  # four columns at a time: the row is read less often
            a, b, c, d = A[j], A[j + 1], A[j + 2], A[j + 3]
            to_a, to_b, to_c, to_d = 0.0, 0.0, 0.0, 0.0
            for k in range(j):
                x = row[k]
                to_a += x * a[k]
                to_b += x * b[k]
                to_c += x * c[k]
                to_d += x * d[k]
            row[j] = (row[j] - to_a) / a[j]
            row[j + 1] = (row[j + 1] - to_b - row[j] * b[j]) / b[j + 1]
            row[j + 2] = (row[j + 2] - to_c - row[j] * c[j] - row[j + 1] * c[j + 1]) / c[j + 2]
            left = row[j + 3] - to_d - row[j] * d[j] - row[j + 1] * d[j + 1] - row[j + 2] * d[j + 2]
            row[j + 3] = left / d[j + 3]
        for j in range(i - i % 4, i):
            total = row[j]
            for k in range(j):
                total -= row[k] * A[j, k]
            row[j] = total / A[j, j]
        total = row[i]
        for k in range(i):
            total -= row[k] * row[k]
        if not total > 0.0:
            return False
        row[i] = math.sqrt(total)
    return True


@compiled(error_model="numpy", fastmath=_SUMS)
def visit(w: Work, slot: int) -> None:  # pragma: no cover
    """Fill in what is known of a point that a descent stands at."""
    if w.points[slot, VISITED] > 0:
        return
    vectors, L, n, p = w.vectors[slot], w.factors[slot], w.y.size, w.H.shape[0]
    root, P, q, diagonal = np.zeros((n, n)), np.empty((n, n)), vectors[N_VECTORS : N_VECTORS + p], vectors[DIAGONAL]
    whole, both = np.zeros(n), w.visited[w.used[1]]
    w.used[1] += 1
    w.points[slot, VISITED] = w.used[1]
    for i in range(n):
        for k in range(i):
            x = L[i, k]
            for j in range(k + 1):
                root[i, j] -= x * root[k, j]
        root[i, i] = 1.0
        for j in range(i + 1):
            root[i, j] /= L[i, i]
            whole[j] += root[i, j] ** 2
    for k in range(p):
        explained = q[k] @ root
        for i in range(n):
            for j in range(n):
                root[i, j] -= q[k, i] * explained[j]
    np.dot(root.T, root, P)
    for j in range(n):
        diagonal[j] = P[j, j] if p == 0 or P[j, j] > ALONE**2 * whole[j] else 0.0
        P[j, j] = diagonal[j]
    S, trace = slopes_and_trace(vectors[N_VECTORS + p :], P, w.shape, w.scale, vectors[ROW_NOISE:], w.features)
    for i in range(n):
        for j in range(i):
            both[i, j] = S[i, j]
        for j in range(i + 1, n):
            both[i, j] = P[i, j]
    put(w.numbers[slot, N_NUMBERS + p + p * p :], trace)


@compiled(error_model="numpy")
def meet(w: Work, slot: int, row: int) -> int:  # pragma: no cover
    """Where mean and variance of a test row's label at a point are kept, for now."""
    code = slot * w.x.shape[0] + row
    place = code % w.met.size
    if w.met[place] == code:
        return place
    w.met[place] = code
    numbers, vectors, p, n = w.numbers[slot], w.vectors[slot], w.H.shape[0], w.y.size
    half, new = w.met_vectors[place], w.x[row : row + 1]
    noise = row_noise(w, slot, w.new_features, row)[0]
    half[:] = 0.0
    scaled, h = new / length_scales(w, w.points[slot, :-1]), w.h[row : row + 1]
    fill(scaled, vectors[N_VECTORS + p :], w.shape, w.scale, False, half)
    mean = dot(half[0], vectors[ALPHA], n) + dot(h[0], numbers[N_NUMBERS:], p)
    whiten(w.factors[slot], half[0])
    square = np.full(1, dot(half[0], half[0], n))
    variance = max(w.scale + noise - square[0], noise)  # no label varies less than its noise
    if p > 0:
        r = numbers[N_NUMBERS + p : N_NUMBERS + p + p * p].reshape((p, p))
        spread = add_unexplained(vectors[N_VECTORS : N_VECTORS + p], r, half, h, square)[0]
        undetermined = w.undetermined[row] or variance <= ALONE**2 * spread
        variance = np.inf if undetermined else variance + spread
    w.met_numbers[place, MEAN], w.met_numbers[place, VARIANCE] = mean, variance
    return place


@compiled(error_model="numpy")
def weights(w: Work, slot: int, met: int) -> Array:  # pragma: no cover
    """Weights of the training rows in the mean of a test row, (1, l)."""
    L, v = w.factors[slot], w.met_vectors[met].copy()
    for i in range(L.shape[0] - 1, -1, -1):
        v[0, i] /= L[i, i]
        x = v[0, i]
        for j in range(i):
            v[0, j] -= x * L[i, j]
    return v


@compiled(error_model="numpy")
def leave(w: Work, slot: int, aside: int) -> int:  # pragma: no cover
    """Where it is kept what it takes to set a training row aside at a point."""
    code, p = slot * w.y.size + aside, w.H.shape[0]
    place = code % w.left_out.size
    if w.left_out[place] != code:
        vectors = w.vectors[slot]
        q, alpha, L = vectors[N_VECTORS : N_VECTORS + p], vectors[ALPHA], w.factors[slot]
        left = leave_out_rows(L, q, w.H, w.y, alpha, np.full(1, aside), p > 0)
        w.left_out[place] = code
        numbers, vectors = w.left_numbers[place], w.left_vectors[place]
        numbers[0], numbers[1] = left[0][0], left[1][0]
        put(numbers[2:], left[5][0])
        put(vectors[COLUMN], left[2][0])
        put(vectors[TARGET], left[3][0])
        put(vectors[LABELS], left[4][0])
    return place


@compiled(error_model="numpy")
def parts(w: Work, slot: int, row: int, aside: int) -> tuple[float, float, float, float]:  # pragma: no cover
    """Q, log D s, μ and s of F (:mod:`conformal_gp.predictors.bag`) with a test row, and a row set aside or none."""
    met, n = meet(w, slot, row), w.y.size
    q, log_d = w.numbers[slot, QUADRATIC], w.numbers[slot, LOG_DETERMINANT]
    mu, s = w.met_numbers[met, MEAN], w.met_numbers[met, VARIANCE]
    if aside >= 0:
        place = leave(w, slot, aside)
        precision = w.left_numbers[place, 0]
        if precision > 0.0:
            half, vectors = w.met_vectors[met, 0], w.left_vectors[place]
            q = w.left_numbers[place, 1]
            log_d += math.log(precision)
            mu = dot(half, vectors[TARGET], n) + dot(w.h[row], w.left_numbers[place, 2:], w.h.shape[1])
            s += dot(half, vectors[COLUMN], n) ** 2 / precision
    if s < np.inf:  # else the test row has no say
        log_d += math.log(s)
    return q, log_d, mu, s


@compiled(error_model="numpy", inline="always")
def slopes_of(w: Work, slot: int, row: int, aside: int) -> Array:  # pragma: no cover
    """a'∂A a, a'∂A b, b'∂A b and tr(P ∂A), (4, c), see :mod:`conformal_gp.gp.slopes`.

    With a test row and with a training row set aside or none; or, where the test row is set aside, without it.
    """
    alone = aside == TEST_ROW
    row = w.x.shape[0] if alone else row
    place = ((row * w.points.shape[0] + slot) * (w.y.size + 3) + aside) % w.sloping.shape[0]
    known, found = w.sloping[place], w.slopes[place]
    if known[0] == slot and known[1] == row and known[2] == aside:
        return found
    known[0], known[1], known[2] = slot, row, aside
    visit(w, slot)
    numbers, vectors, p, d = w.numbers[slot], w.vectors[slot], w.H.shape[0], w.X.shape[1]
    n, both, diagonal = w.y.size, w.visited[w.points[slot, VISITED] - 1], vectors[DIAGONAL]
    variance, which, of_row = np.full(1, np.inf), np.full(1, -1), np.zeros((1, n))
    v, residuals, x = np.zeros((1, n)), vectors[ALPHA : ALPHA + 1].copy(), np.zeros((1, d))
    k, own_noise = w.features.shape[1], np.zeros(2)
    if not alone:
        own_noise[0], own_noise[1] = row_noise(w, slot, w.new_features, row)
        met = meet(w, slot, row)
        variance[0], v = w.met_numbers[met, VARIANCE], weights(w, slot, met)
        x = w.x[row : row + 1] / length_scales(w, w.points[slot, :-1])
        if aside >= 0 and diagonal[aside] > 0.0:
            which[0] = aside
            labels = w.left_vectors[leave(w, slot, aside), LABELS]
            for i in range(n):
                of_row[0, i] = both[min(i, aside), max(i, aside)] if i != aside else diagonal[i]
                residuals[0, i] = diagonal[i] * labels[i]
            for i in range(n):  # P times the labels, from its upper triangle
                rest = i + 1
                residuals[0, i] += dot(both[i, rest:], labels[rest:], n - rest)
                add_to(residuals[0, rest:], labels[i], both[i, rest:])
    trace, columns = numbers[N_NUMBERS + p + p * p :], vectors[N_VECTORS + p :]
    noise, of_new, shape, scale = vectors[ROW_NOISE:], w.new_features[0 if alone else row], w.shape, w.scale
    rows = beside(
        columns, of_row, residuals, both, trace, shape, scale, noise, w.features,
        x, own_noise, of_new, v, variance, which,
    )  # fmt: skip
    every = rows[0]
    found[:] = 0.0
    for i in range(4):
        for j in range(d):  # one length scale for all inputs, or one for each
            found[i, j if w.logarithms.size > 1 else 0] += every[i, j]
        for j in range(k + 1):
            found[i, w.logarithms.size + j] = every[i, d + j]
    return found
