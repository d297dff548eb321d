"""The brute-force oracle against itself and against results by hand."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import odd_regions
import oracle

INF = np.inf
GAMMAS = [1.0, 2.0, 3.0, 8.0, INF]
KERNELS = {
    "rbf": ConstantKernel(1.5) * RBF(0.8),
    "matern": Matern(1.2, nu=1.5),
    "dot": DotProduct(0.5) + ConstantKernel(0.1) * RBF(0.5),
}
BASES = ["none", "constant", "linear"]


def make_basis(name, X):
    """Regressors of the mean function at the rows of X."""
    columns = {"constant": [np.ones(len(X))], "linear": [np.ones(len(X)), X[:, 0]]}
    return None if name == "none" else np.column_stack(columns[name])


def make_problem(seed, size, basis="none"):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (size + 1, 2))
    y = np.sin(2 * X[:size, 0]) + rng.normal(0, 0.5, size)
    H = make_basis(basis, X)
    regressors = {} if H is None else {"basis": H[:-1], "basis_new": H[-1]}
    return X[:-1], y, X[-1], regressors


def contains(pieces, t):
    return any(low <= t <= high for low, high in pieces)


def distance_to_ends(pieces, t):
    ends = pieces[np.isfinite(pieces)]
    return np.abs(ends - t).min(initial=INF)


def check_by_scan(args, gamma, deltas, labels, **options):
    """Assert that region and p_value agree at labels, at the ends of the region and next to them.

    Returns the regions, and how many of the labels were inside and outside.
    """
    kernel, noise, X, y, x_new = args

    def p(t):
        return oracle.p_value(kernel, noise, X, y, x_new, t, gamma, **options)

    regions = [oracle.region(kernel, noise, X, y, x_new, delta, gamma, **options) for delta in deltas]
    inside, outside = 0, 0
    for t in labels:
        value = p(t)
        for delta, pieces in zip(deltas, regions, strict=True):
            if distance_to_ends(pieces, t) > 1e-6 * (1 + abs(t)):
                member = contains(pieces, t)
                assert (value > delta) == member, (t, delta, value, pieces)
                inside, outside = inside + member, outside + (not member)
    for delta, pieces in zip(deltas, regions, strict=True):
        assert np.all(pieces[:, 0] <= pieces[:, 1])
        assert np.all(pieces[1:, 0] > pieces[:-1, 1])
        for end in pieces[np.isfinite(pieces)]:
            assert p(end) > delta
            for t in (end - 1e-5 * (1 + abs(end)), end + 1e-5 * (1 + abs(end))):
                if distance_to_ends(pieces, t) > 1e-6 * (1 + abs(t)):
                    assert (p(t) > delta) == contains(pieces, t), (t, delta, pieces)
    return regions, inside, outside


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_region_is_where_the_p_value_by_refits_exceeds_delta(gamma, kernel, basis):
    smallest = {"none": 1, "constant": 1, "linear": 2}[basis]
    index = GAMMAS.index(gamma) + 5 * list(KERNELS).index(kernel) + 15 * BASES.index(basis)
    sizes = [smallest + (index + step) % (9 - smallest) for step in (0, 3, 6)]
    seen_inside, seen_outside = 0, 0
    for size in sizes:
        X, y, x_new, regressors = make_problem(100 * index + size, size, basis)
        deltas = [Fraction(k, size + 1) for k in range(size + 1)] + [Fraction(1, 10), Fraction(1, 2)]
        labels = np.concatenate([np.linspace(-4, 4, 31), [-1e4, -30, 30, 1e4]])
        args = (KERNELS[kernel], 0.1, X, y, x_new)
        _, inside, outside = check_by_scan(args, gamma, deltas, labels, **regressors)
        seen_inside, seen_outside = seen_inside + inside, seen_outside + outside
    assert seen_inside > 50
    assert seen_outside > 20


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("basis", ["none", "constant"])
def test_ranked_rows_only_are_counted(gamma, basis):
    X, y, x_new, regressors = make_problem(7, 7, basis)
    ranked = [5, 0, 3]
    args = (KERNELS["rbf"], 0.05, X, y, x_new)
    deltas = [Fraction(k, 4) for k in range(4)]
    labels = np.linspace(-4, 4, 41)
    regions, inside, outside = check_by_scan(args, gamma, deltas, labels, ranked=ranked, **regressors)
    assert inside > 10
    assert outside > 10
    others = [oracle.region(*args, delta, gamma, **regressors) for delta in deltas[1:]]
    assert not all(np.array_equal(one, other) for one, other in zip(regions[1:], others, strict=True))
    p = oracle.p_value(*args, 0.3, gamma, ranked=ranked, **regressors)
    alpha = oracle.scores(
        KERNELS["rbf"],
        0.05,
        np.vstack([X, x_new]),
        np.append(y, 0.3),
        gamma,
        None if basis == "none" else np.ones((8, 1)),
    )
    assert p == Fraction(1 + int(sum(alpha[ranked] >= alpha[-1])), 4)


def test_all_rows_ranked_is_the_default():
    X, y, x_new, _ = make_problem(8, 5)
    args = (KERNELS["matern"], 0.1, X, y, x_new)
    default, explicit = (oracle.region(*args, 0.3, 2.0, ranked=r) for r in (None, range(5)))
    np.testing.assert_array_equal(default, explicit)
    background = oracle.region(*args, 0.3, 2.0, ranked=[])
    np.testing.assert_array_equal(background, [[-INF, INF]])


@pytest.mark.parametrize("bad", [[0, 0], [5], [-1]])
def test_ranked_must_be_distinct_training_rows(bad):
    X, y, x_new, _ = make_problem(8, 5)
    with pytest.raises(ValueError, match="ranked"):
        oracle.region(KERNELS["rbf"], 0.1, X, y, x_new, 0.3, 2.0, ranked=bad)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_by_refits_equal_the_closed_form(kernel, gamma, basis):
    X, y, x_new, regressors = make_problem(3, 6, basis)
    noise, label = 0.2, 0.7
    rows, labels = np.vstack([X, x_new]), np.append(y, label)
    a, b = oracle.lines(KERNELS[kernel], noise, X, y, x_new, gamma, **regressors)
    factor = noise if gamma == 1 else 1.0  # equation 21 leaves out the noise variance of equation 11
    H = make_basis(basis, rows)
    by_refits = oracle.scores(KERNELS[kernel], noise, rows, labels, gamma, H)
    np.testing.assert_allclose(by_refits, factor * np.abs(a + b * label), rtol=1e-9, atol=1e-12)


def test_scores_of_two_rows_by_hand():
    # K + I = [[2, 2], [2, 5]], with inverse [[5, -2], [-2, 2]] / 6.
    kernel, X, y = DotProduct(0.0), [[1.0], [2.0]], [1.0, 1.0]
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, y, 1.0), [3 / 6, 0.0], atol=1e-15)
    # Left out: mean 2/5 with variance 6/5 at the first row, mean 1 with variance 3 at the second.
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, y, INF), [3 / 5, 0.0], atol=1e-15)
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, [1.0, 2.0], INF), [1 / 5, 1.0])
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, [1.0, 2.0], 2.0), [1 / 5 / np.sqrt(6 / 5), 1 / np.sqrt(3)])


def test_a_constant_mean_with_a_vanishing_kernel_is_the_sample_mean():
    y = np.array([1.0, 2.0, 4.0, 9.0])
    X, H = np.zeros((4, 1)), np.ones((4, 1))
    kernel, noise = ConstantKernel(1e-14), 0.5
    np.testing.assert_allclose(oracle.scores(kernel, noise, X, y, 1.0, H), np.abs(y - 4.0))
    rest = (16.0 - y) / 3
    np.testing.assert_allclose(oracle.scores(kernel, noise, X, y, INF, H), np.abs(y - rest))
    variance = noise * (1 + 1 / 3)
    np.testing.assert_allclose(oracle.scores(kernel, noise, X, y, 2.0, H), np.abs(y - rest) / np.sqrt(variance))


@pytest.mark.parametrize("gamma", GAMMAS[1:])
def test_scores_with_a_basis_are_the_limit_of_a_vague_prior(gamma):
    X, y, _, _ = make_problem(5, 6)
    H = make_basis("linear", X)

    class Vague:
        """Kernel of the process plus a linear function whose coefficients have a wide prior."""

        def __call__(self, A, B=None):
            B = A if B is None else B
            return KERNELS["rbf"](A, B) + 1e6 * (make_basis("linear", A) @ make_basis("linear", B).T)

        def diag(self, A):
            return np.diag(self(A))

    exact = oracle.scores(KERNELS["rbf"], 0.1, X, y, gamma, H)
    np.testing.assert_allclose(oracle.scores(Vague(), 0.1, X, y, gamma), exact, rtol=1e-4)


@pytest.mark.parametrize("gamma", [2.0, 3.0, INF])
def test_a_single_row_is_scored_under_the_prior(gamma):
    kernel = ConstantKernel(3.0) * RBF(1.0)
    alpha = oracle.scores(kernel, 1.0, [[0.4, 0.2]], [-5.0], gamma)
    np.testing.assert_allclose(alpha, [5.0 / 4.0 ** (1 / gamma)])


@pytest.mark.parametrize("gamma", GAMMAS)
def test_no_training_rows_leave_every_label_conforming(gamma):
    X, y, x_new = np.empty((0, 2)), np.empty(0), [0.1, 0.2]
    kernel = KERNELS["rbf"]
    assert oracle.p_value(kernel, 0.1, X, y, x_new, 3.0, gamma) == 1
    np.testing.assert_array_equal(oracle.region(kernel, 0.1, X, y, x_new, 0.5, gamma), [[-INF, INF]])


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_white_kernel_is_noise(gamma):
    X, y, x_new, _ = make_problem(4, 5)
    plain, white = KERNELS["rbf"], KERNELS["rbf"] + WhiteKernel(0.15)
    expected = oracle.scores(plain, 0.2, X, y, gamma)
    np.testing.assert_allclose(oracle.scores(white, 0.05, X, y, gamma), expected)
    np.testing.assert_allclose(
        oracle.region(white, 0.05, X, y, x_new, 0.3, gamma),
        oracle.region(plain, 0.2, X, y, x_new, 0.3, gamma),
    )


def test_requests_without_a_meaning_are_refused():
    X, y, x_new, regressors = make_problem(4, 4, "linear")
    with pytest.raises(ValueError, match="needs noise"):
        oracle.scores(KERNELS["rbf"], 0.0, X, y, 1.0)
    with pytest.raises(ValueError, match="gamma"):
        oracle.scores(KERNELS["rbf"], 0.1, X, y, 0.5)
    with pytest.raises(ValueError, match="identify"):
        oracle.scores(KERNELS["rbf"], 0.1, X[:2], y[:2], 2.0, regressors["basis"][:2])
    with pytest.raises(ValueError, match="identify"):
        oracle.scores(KERNELS["rbf"], 0.1, X[:1], y[:1], 2.0, np.ones((1, 1)))
    with pytest.raises(ValueError, match="together"):
        oracle.region(KERNELS["rbf"], 0.1, X, y, x_new, 0.3, 2.0, basis=regressors["basis"])


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_repeated_observation_ties(gamma):
    X, y, _, _ = make_problem(6, 4)
    # All four rows are the same observation, and so is the new one: all scores are equal.
    same_X, same_y = np.repeat(X[:1], 4, axis=0), np.repeat(y[:1], 4)
    assert oracle.p_value(KERNELS["rbf"], 0.1, same_X, same_y, X[0], y[0], gamma) == 1
    # One training row is the same observation as the new one: its score ties, the others are computed.
    alpha = oracle.scores(KERNELS["rbf"], 0.1, np.vstack([X, X[0]]), np.append(y, y[0]), gamma)
    p = oracle.p_value(KERNELS["rbf"], 0.1, X, y, X[0], y[0], gamma)
    assert p == Fraction(2 + int(sum(alpha[1:4] > alpha[0])), 5)


@pytest.mark.parametrize("gamma", [2.0, 3.0, INF])
def test_equal_labels_with_a_constant_mean_conform_with_each_other(gamma):
    X, _, x_new, regressors = make_problem(9, 5, "constant")
    y = np.full(5, 0.7)
    args = (KERNELS["matern"], 0.1, X, y, x_new)
    assert oracle.p_value(*args, 0.7, gamma, **regressors) == 1
    assert oracle.p_value(*args, 0.7 + 1e-9, gamma, **regressors) < 1
    pieces = oracle.region(*args, Fraction(5, 6), gamma, **regressors)
    np.testing.assert_allclose(pieces, [[0.7, 0.7]])


def test_one_row_with_a_constant_mean_is_always_as_strange_as_the_new_one():
    args = (KERNELS["rbf"], 0.1, [[0.0]], [0.8], [0.5])
    for gamma in (1.0, 3.0, INF):
        pieces = oracle.region(*args, Fraction(1, 2), gamma, basis=[[1.0]], basis_new=[1.0])
        np.testing.assert_array_equal(pieces, [[-INF, INF]])


HOLES = {
    1.0: [[-2.902, -0.026], [1.498, 2.923]],
    3.0: [[-0.457, -0.129], [0.426, 1.057]],
    INF: [[-1.877, -0.632], [0.378, 1.681]],
}
RAYS = {
    1.0: [[-INF, -51.31], [-18.24, 19.99], [40.41, INF]],
    3.0: [[-INF, 0.419], [1.715, INF]],
    INF: [[-INF, -6.145], [-1.060, 1.474], [8.133, INF]],
}


@pytest.mark.parametrize("gamma", HOLES)
def test_problem_with_hole(gamma):
    *args, found, delta = odd_regions.with_hole(gamma)
    assert found == gamma
    (pieces,), inside, outside = check_by_scan(args, gamma, [delta], np.linspace(-8, 8, 81))
    np.testing.assert_allclose(pieces, HOLES[gamma], atol=1e-3)
    assert inside > 0
    assert outside > 0
    middle = (pieces[0, 1] + pieces[1, 0]) / 2
    assert oracle.p_value(*args, middle, gamma) <= delta
    assert oracle.hull(pieces) == (pieces[0, 0], pieces[1, 1])


@pytest.mark.parametrize("gamma", RAYS)
def test_problem_with_ray(gamma):
    *args, found, delta = odd_regions.with_ray(gamma)
    assert found == gamma
    labels = np.concatenate([np.linspace(-80, 80, 41), np.linspace(-4, 4, 41), [-1e7, -1e4, 1e4, 1e7]])
    (pieces,), inside, outside = check_by_scan(args, gamma, [delta], labels)
    np.testing.assert_allclose(pieces, RAYS[gamma], atol=1e-2)
    assert inside > 0
    assert outside > 0
    assert oracle.hull(pieces) == (-INF, INF)


@pytest.mark.parametrize(("gamma", "end"), [(1.0, 7 / 4), (INF, 7 / 10)])
def test_problem_with_single_ray(gamma, end):
    *args, found, delta = odd_regions.with_single_ray(gamma)
    assert found == gamma
    labels = np.concatenate([np.linspace(-5, 5, 41), [-1e6, -1e3, 1e3, 1e6]])
    (pieces,), _, outside = check_by_scan(args, gamma, [delta], labels)
    np.testing.assert_allclose(pieces, [[-INF, end]])
    assert outside > 0


@pytest.mark.parametrize("problem", [odd_regions.with_hole, odd_regions.with_ray, odd_regions.with_single_ray])
def test_problems_exist_for_some_gamma_only(problem):
    with pytest.raises(ValueError, match="gamma"):
        problem(2.0)


@pytest.mark.parametrize("basis", BASES)
def test_gamma_2_gives_one_bounded_interval(basis):
    for seed in range(40):
        size = 3 + seed % 6
        X, y, x_new, regressors = make_problem(seed, size, basis)
        for k in range(1, size + 1):
            pieces = oracle.region(KERNELS["rbf"], 0.01, X, y, x_new, Fraction(k, size + 1), 2.0, **regressors)
            assert pieces.shape == (1, 2)
            assert np.isfinite(pieces).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_high_precision_agrees_where_floats_suffice(gamma):
    X, y, x_new, _ = make_problem(11, 7)
    kernel = ConstantKernel(1.5) * RBF(0.8)
    for k in range(8):
        delta = Fraction(k, 8)
        exact = oracle.region_mpmath(X, y, x_new, 1.5, 0.8, 0.1, delta, gamma)
        plain = oracle.region(kernel, 0.1, X, y, x_new, delta, gamma)
        np.testing.assert_allclose(plain, exact, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("gamma", HOLES)
@pytest.mark.parametrize("problem", [odd_regions.with_hole, odd_regions.with_ray])
def test_high_precision_finds_the_same_pieces(problem, gamma):
    kernel, noise, X, y, x_new, _, delta = problem(gamma)
    exact = oracle.region_mpmath(X, y, x_new, 1.0, kernel.length_scale, noise, delta, gamma)
    np.testing.assert_allclose(oracle.region(kernel, noise, X, y, x_new, delta, gamma), exact, rtol=1e-9)


def test_high_precision_does_not_depend_on_its_digits_where_floats_fail():
    X = np.linspace(0, 1, 12)[:, np.newaxis]
    y, x_new, delta = np.cos(3 * X[:, 0]), [0.45], Fraction(1, 5)
    arguments = (X, y, x_new, "1", "1.5", "1e-20", delta, 3.0)
    condition = np.linalg.cond(RBF(1.5)(X) + 1e-20 * np.eye(12))
    assert condition > 1e14
    exact = oracle.hull(oracle.region_mpmath(*arguments))
    more = oracle.hull(oracle.region_mpmath(*arguments, digits=90))
    assert exact == more
    assert exact[0] < np.cos(3 * 0.45) < exact[1]
    assert exact[1] - exact[0] < 1e-3
