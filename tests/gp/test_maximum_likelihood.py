"""Maximum likelihood: reproducible, at least as good as scikit-learn's, and honest about how it ended."""

import re
import threading
import warnings
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from cases import make_basis, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp import maximum_likelihood
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.kernels import kernel_from_name
from conformal_gp.gp.likelihood import NegativeLogLikelihood
from conformal_gp.gp.maximum_likelihood import NOISE_RATIOS, LearningRows, Search, Space
from conformal_gp.gp.posterior import Posterior, noise_floor
from conformal_gp.rows import Rows

NAMES = ["se", "rq", "nn", "matern32", "matern52"]


class Optimum(NamedTuple):
    """Where a search has ended."""

    kernel: Kernel
    noise_variance: float
    log_likelihood: float
    remarks: list[str]


def tune(
    kernel, X, y, *, noise_variance=0.1, mean=None, n_restarts=2, seed=0, n_jobs=1, restricted=False, least_ratio=0.0
):
    H = np.empty((len(y), 0)) if mean is None else make_basis(mean, X)
    least_ratio = max(least_ratio, NOISE_RATIOS[0], noise_floor(len(y)))
    space = Space(kernel, float(noise_variance), least_ratio, restricted)
    search = Search(space, [LearningRows(X, y, H, np.zeros(len(y)))], n_jobs)
    end = search.from_starts(n_restarts, np.random.RandomState(seed))
    if search.is_coarse:
        end = search.climb(end.x)
    return Optimum(search.kernel(end.x), search.split(end.x)[1], -search.value(end.x), search.remarks(end))


def parameters(optimum):
    return np.append(np.exp(optimum.kernel.theta), optimum.noise_variance)


@pytest.mark.parametrize("name", ["se", "nn"])
def test_the_result_does_not_depend_on_the_number_of_threads(name):
    X, y = make_data(1, 60)
    kernel = kernel_from_name(name, amplitude=float(np.var(y)))
    one, *others = [tune(kernel, X, y, mean="linear", n_restarts=3, n_jobs=n) for n in (1, 2, 4, None, -1)]
    for other in others:
        np.testing.assert_array_equal(parameters(other), parameters(one))
        assert other.log_likelihood == one.log_likelihood


@pytest.mark.parametrize("kernel", [RBF(1.0), RBF([1.0, 1.0]), Matern(1.0, nu=1.5), Matern(1.0, nu=2.5)])
def test_not_worse_than_the_optimum_of_scikit_learn(kernel):
    for seed in range(3):
        X, y = make_data(seed, 50)
        start = ConstantKernel(1.0) * kernel
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            gp = GaussianProcessRegressor(
                start + WhiteKernel(0.1), alpha=0.0, n_restarts_optimizer=2, random_state=0
            ).fit(X, y)
        optimum = tune(start, X, y)
        assert optimum.log_likelihood > gp.log_marginal_likelihood_value_ - 1e-3


@pytest.mark.parametrize("mean", [None, "constant", "linear"])
@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_stationary_and_worth_what_it_says(name, mean):
    X, y = make_data(4, 50)
    kernel = kernel_from_name(name, amplitude=float(np.var(y)))
    optimum = tune(kernel, X, y, mean=mean)
    H = np.empty((50, 0)) if mean is None else make_basis(mean, X)
    theta = np.append(optimum.kernel.theta, np.log(optimum.noise_variance))
    value, gradient = NegativeLogLikelihood(kernel, X, y, H)(theta)
    assert optimum.log_likelihood == pytest.approx(-value, rel=1e-12)
    bounds = np.vstack([kernel.bounds, np.log(np.multiply(NOISE_RATIOS, np.var(y)))])
    inside = np.abs(theta[:, None] - bounds).min(axis=1) > 1e-6
    assert inside.any()
    np.testing.assert_allclose(gradient[inside], 0.0, atol=0.02)


def test_a_restart_can_leave_a_poor_optimum():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (60, 1))
    y = np.sin(3 * X[:, 0]) + rng.normal(0, 0.1, 60)
    kernel = ConstantKernel(1.0) * RBF(10.0, (1e-2, 1e3))  # so smooth that all looks like noise
    stuck, free = (tune(kernel, X, y, noise_variance=1.0, n_restarts=n) for n in (0, 20))
    assert free.log_likelihood > stuck.log_likelihood + 10
    assert free.kernel.k2.length_scale < 2


def test_noise_of_zero_is_not_learnt():
    X, y = make_data(6, 20)
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1)
    optimum = tune(kernel, X, y, noise_variance=0.0)
    assert optimum.noise_variance == 0.0
    learnt = tune(kernel.k1, X, y)
    assert optimum.log_likelihood == pytest.approx(learnt.log_likelihood, abs=1e-3)
    assert optimum.kernel.k2.noise_level == pytest.approx(learnt.noise_variance, rel=1e-2)


def test_nothing_to_learn_is_nothing_changed():
    X, y = make_data(7, 20)
    kernel = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed") + WhiteKernel(0.1, "fixed")
    optimum = tune(kernel, X, y, noise_variance=0.0)
    assert optimum.kernel == kernel
    gp = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    assert optimum.log_likelihood == pytest.approx(gp.log_marginal_likelihood_value_, rel=1e-10)


def test_a_hyperparameter_on_its_bound_is_named():
    X, y = make_data(9, 30)
    (remark,) = tune(ConstantKernel(1.0) * RBF([1.0, 5.0], [(1e-3, 10.0), (4.0, 10.0)]), X, np.sin(9 * X[:, 1])).remarks
    assert remark.startswith("k2__length_scale[1] ended on its lower bound")
    remarks = tune(ConstantKernel(1e4, (1e3, 1e5)) * RBF(1.0, (0.9, 1.1)), X, y).remarks
    assert remarks[0].startswith("k1__constant_value ended on its lower bound")


def test_inputs_that_do_not_matter_and_labels_without_noise_are_nothing_to_remark_on():
    X, _ = make_data(9, 30)
    optimum = tune(ConstantKernel(1.0) * RBF([1.0, 1.0], (1e-3, 100.0)), X, np.sin(X[:, 0]))
    assert optimum.kernel.k2.length_scale[1] == pytest.approx(100.0)
    least = max(NOISE_RATIOS[0], noise_floor(30))
    assert optimum.noise_variance == pytest.approx(least * optimum.kernel.k1.constant_value, rel=1e-3)
    assert not any("bound" in remark for remark in optimum.remarks)


def test_shrinkage_keeps_length_scales_alike():
    X, y = make_data(10, 25)
    start = kernel_from_name("se", n_inputs=2)
    free, shrunk = (np.ptp(tune(start, X, y, restricted=on).kernel.theta[1:]) for on in (False, True))
    assert free > shrunk


class WrongGradient(RBF):
    """A kernel whose gradient points the wrong way: no line search can succeed."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if not eval_gradient:
            return super().__call__(X, Y)
        K, gradient = super().__call__(X, eval_gradient=True)
        return K, -gradient


def test_an_optimiser_that_fails_is_reported():
    X, y = make_data(11, 30)
    remarks = tune(ConstantKernel(1.0, "fixed") * WrongGradient(0.3), X, y, n_restarts=0).remarks
    assert re.search(r"not maximised.*n_restarts", remarks[0])


def test_a_kernel_that_is_singular_everywhere_is_an_error(monkeypatch):
    def singular(*_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(maximum_likelihood.NegativeLogLikelihood, "__call__", singular)
    with pytest.raises(np.linalg.LinAlgError, match="noise_variance"):
        tune(ConstantKernel(1.0) * RBF(1.0), *make_data(6, 20))


def test_noise_of_zero_is_the_least_that_is_searched_where_the_kernel_has_none():
    X, y = make_data(6, 20)
    optimum = tune(ConstantKernel(1.0) * RBF(1.0), X, y, noise_variance=0.0, least_ratio=1e-6)
    assert optimum.noise_variance == pytest.approx(1e-6 * optimum.kernel.k1.constant_value)
    assert not any("noise" in remark for remark in optimum.remarks)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_restarts_of_a_small_fit_run_in_threads(n_jobs, monkeypatch):
    monkeypatch.setattr("conformal_gp.threads.effective_n_jobs", lambda n: n)
    seen, minimise = set(), maximum_likelihood.minimize

    def spy(*args, **options):
        seen.add(threading.current_thread())
        return minimise(*args, **options)

    monkeypatch.setattr(maximum_likelihood, "minimize", spy)
    X, y = make_data(12, 60)
    with threadpool_limits(2, user_api="blas"):  # however many the machine has
        ConformalGPRegressor("se", mean="zero", tuning="train", n_restarts=3, random_state=0, n_jobs=n_jobs).fit(X, y)
    assert threading.main_thread() not in seen


def test_with_many_rows_all_seeds_find_the_same_optimum():
    # starts of some seeds end where every length scale is too short on a few rows, and would stay there on all
    rng = np.random.default_rng(4)
    X = rng.standard_normal((650, 4))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(650)
    optima = [tune(kernel_from_name("matern52", n_inputs=4, length_scale=2.0), X, y, seed=seed) for seed in range(2)]
    best = max(optimum.log_likelihood for optimum in optima)
    assert all(optimum.log_likelihood > best - 0.1 for optimum in optima)
    assert all(optimum.noise_variance == pytest.approx(0.04, rel=0.3) for optimum in optima)


@pytest.mark.parametrize(("restricted", "n_rows"), [(False, 601), (True, 601), (True, 200)])
def test_starts_are_followed_on_some_of_many_rows(restricted, n_rows, monkeypatch):
    sizes, climb = [], Search.climb

    def spy(search, start, *steps):
        sizes.append(search.blocks[0].y.size)
        return climb(search, start, *steps)

    monkeypatch.setattr(Search, "climb", spy)
    X, y = make_data(13, n_rows)
    tune(kernel_from_name("se"), X, y, n_restarts=3, mean="linear", restricted=restricted)
    if not restricted:
        assert sizes == [300] * 4 + [601]
    else:  # six times three random starts and the given one, then those that differ, then the best
        screened, followed = sizes[:19], sizes[19:]
        assert screened == [150] * 19
        assert 2 <= followed.count(min(300, n_rows)) <= 6
        assert followed.count(601) == (n_rows == 601)


def test_the_likelihood_of_blocks_is_their_sum_with_its_gradient():
    X, y = make_data(4, 50)
    kernel = ConstantKernel(1.5) * RBF([0.7] * X.shape[1])
    rows = LearningRows(X, y, make_basis("linear", X), np.zeros(50))
    blocks = [rows.take(np.arange(start, start + 25)) for start in (0, 25)]
    whole, *parts = [Search(Space(kernel, 0.2, 1e-10), some) for some in (blocks, *zip(blocks))]
    value, gradient = whole.penalised(whole.start)
    assert value == pytest.approx(sum(part.penalised(whole.start)[0] for part in parts))
    for i, step in enumerate(1e-5 * np.eye(whole.start.size)):
        difference = whole.value(whole.start + step) - whole.value(whole.start - step)
        assert gradient[i] == pytest.approx(difference / 2e-5, rel=1e-4, abs=1e-4)


def test_leave_one_out_errors_are_those_of_the_posterior():
    X, y = make_data(5, 30)
    inputs = Inputs(Rows(X), Scaling(), "linear")
    kernel = ConstantKernel(1.5) * RBF(0.7)
    search = Search(Space(kernel, 0.2, 1e-10), [LearningRows(inputs.X, y, inputs.H, None)])
    value, error, deviation = search.left_out(search.start)
    posterior = Posterior(kernel, 0.2, inputs, y)
    np.testing.assert_allclose(deviation, posterior.diagonal**-0.5)
    np.testing.assert_allclose(error, posterior.residuals / posterior.diagonal)
    assert value == pytest.approx(search.penalised(search.start)[0])
