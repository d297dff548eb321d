"""The ways to choose hyperparameters: each takes settings and training rows and gives a predictor.

What a way learns is a :class:`Recipe`; from it and the training rows :func:`rebuild` makes the predictor again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel

from conformal_gp.conformal.levels import read_level
from conformal_gp.conformal.measure import narrowest_gamma
from conformal_gp.gp.candidates import Candidate, lattice, proposed, stretched
from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.factor import norm_of_lower
from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.patterns import Patterns, has_patterns
from conformal_gp.gp.posterior import Posterior, noise_floor
from conformal_gp.gp.scaling import Scaling, SymmetricScaling
from conformal_gp.gp.tuning import Optimum, maximise_likelihood
from conformal_gp.kernels import kernel_from_name
from conformal_gp.predictors.augmented import AugmentedPredictor
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.single import SinglePredictor

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
T = TypeVar("T")

# Largest numbers of rows at which "auto" tunes inside the bag, with named kernels and with kernel objects; beyond, a
# design set costs less and loses little.
ROWS_FOR_AUGMENTED = 1000
ROWS_FOR_OBJECTS = 200
# Largest number of inputs whose length scales are searched inside the bag, up to as many rows as "auto" takes; the
# search passes hundreds of factorisations. Beyond, design rows propose candidates.
INPUTS_FOR_SEARCH = 20
# Share of the rows that are design rows where they teach everything; where they only propose candidates, so many for
# each hyperparameter of the kernel, between two shares.
TEACHING_SHARE = 1 / 2
PROPOSING_ROWS = 4
PROPOSING_SHARES = (1 / 5, 2 / 5)
# Numbers learnt from the training rows, as a share of these, and coverage measured at nominal 90% (studies/coverage).
MEASURED_COVERAGE = ((0.1, 0.88), (0.2, 0.84), (0.33, 0.74), (0.5, 0.66), (0.68, 0.54))


@dataclass(frozen=True)
class Settings:
    """The regressor's parameters, checked."""

    kernels: list[str | Kernel]
    mean: str
    noise_variance: float | None
    gammas: list[float]
    scale_inputs: bool
    n_restarts: int
    n_jobs: int | None
    design: float | Rows | None
    candidates: list[Candidate] | None


def _no_rows() -> Rows:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Recipe:
    """What was learnt: with the training rows, all that a predictor is made of."""

    candidates: list[Candidate]
    """The one in use, or those to choose among inside the bag."""
    mean: str
    scaling: Scaling | None
    """None is by all rows of the bag."""
    gamma: float
    guarantee: str
    design: Rows = field(default_factory=_no_rows)
    """Rows that are not ranked."""
    inside_bag: bool = False
    searched: Kernel | None = None
    """The kernel whose patterns of length scales are searched inside the bag, instead of candidates."""
    flat_prior: bool = True
    """Whether the coefficients of the mean have a flat prior, or are given at their estimate."""

    def ranked(self, n_rows: int) -> Rows | None:
        """Rows that are ranked; None is all."""
        return None if self.design.size == 0 else np.setdiff1d(np.arange(n_rows), self.design)


@dataclass(frozen=True)
class Fitted:
    """A recipe carried out on its training rows."""

    recipe: Recipe
    predictor: Predictor
    kernel: Kernel
    noise_variance: float
    mean_coef: Array
    log_marginal_likelihood: float


class Learnt(NamedTuple):
    """What some rows taught, or what was given."""

    scaling: Scaling
    inputs: Inputs
    """Those rows under the scaling."""
    kernel: Kernel
    noise_variance: float
    gamma: float


def automatic(settings: Settings, n_rows: int) -> str:
    """The way that ``tuning="auto"`` takes: it depends on the number of rows and on the kernel alone."""
    named = all(isinstance(kernel, str) for kernel in settings.kernels)
    most = ROWS_FOR_AUGMENTED if named else ROWS_FOR_OBJECTS
    own_noise = not named and settings.noise_variance == 0.0  # candidates bring noise
    if settings.candidates is not None or (n_rows <= most and not own_noise):
        return "augmented"
    return "holdout"


def fit_fixed(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> Fitted:
    """Kernel and noise as given."""
    scaling, inputs, kernel, noise, gamma = as_given(settings, X)
    _warn_if_explained(inputs, y, settings.mean)
    if settings.scale_inputs:
        guarantee = (
            "Not exact: inputs were scaled by the training rows alone, so coverage can differ slightly from the level; "
            "with scale_inputs=False it is exact."
        )
    else:
        guarantee = f"Exact: kernel and noise were fixed beforehand and all rows enter alike, so {PROMISE}."
    chosen = [Candidate(kernel, noise)]
    return _single(Recipe(chosen, settings.mean, scaling, gamma, guarantee), inputs, y, settings.n_jobs)


def fit_train(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> Fitted:
    """Everything learnt from the training rows, the paper's way."""
    gamma = _only(settings.gammas, "gamma", "train")
    scaling = _scaling(settings, X)
    inputs = Inputs(X, scaling, settings.mean)
    optimum = _learn(settings, inputs, y, rng, restricted=False)
    chosen = [Candidate(optimum.kernel, _raised(optimum, inputs, n_rows=y.size))]
    guarantee = (
        "Not exact: hyperparameters and mean function were learnt from the training rows alone, so coverage can fall "
        "below the level, most with few rows or many hyperparameters."
    )
    _warn_if_few_rows(optimum.kernel, inputs, y.size)
    recipe = Recipe(chosen, settings.mean, scaling, gamma, guarantee, flat_prior=False)
    return _single(recipe, inputs, y, settings.n_jobs)


def fit_holdout(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> Fitted:
    """Everything learnt from design rows; all rows predict, the others are ranked."""
    design = _design_rows(settings, X, TEACHING_SHARE, rng)
    learnt = learn_on_design(settings, X[design], y[design], y.size, rng)
    guarantee = (
        f"Exact: scaling and hyperparameters were learnt from {design.size} design rows and the other "
        f"{y.size - design.size} are ranked, so {PROMISE}."
    )
    chosen = [Candidate(learnt.kernel, learnt.noise_variance)]
    recipe = Recipe(chosen, settings.mean, learnt.scaling, learnt.gamma, guarantee, design)
    return rebuild(recipe, X, y, settings.n_jobs)


def as_given(settings: Settings, X: Array) -> Learnt:
    """Kernel and noise as the settings have them; only the scaling comes from the rows ``X``."""
    kernel, gamma = _only(settings.kernels, "kernel", "fixed"), _only(settings.gammas, "gamma", "fixed")
    if settings.noise_variance is None:
        raise ValueError(
            "noise_variance must be a number with tuning='fixed', got None (0 if the kernel has its own noise)."
        )
    scaling = _scaling(settings, X)
    inputs = Inputs(X, scaling, settings.mean)
    kernel = kernel_from_name(kernel) if isinstance(kernel, str) else clone(kernel)
    _check_kernel(kernel, inputs)
    return Learnt(scaling, inputs, kernel, settings.noise_variance, gamma)


def learn_on_design(settings: Settings, X: Array, y: Array, n_rows: int, rng: np.random.RandomState) -> Learnt:
    """Scaling, hyperparameters and gamma from design rows (X, y), for a model of ``n_rows`` rows."""
    scaling = _scaling(settings, X)
    inputs = Inputs(X, scaling, settings.mean)
    optimum = _learn(settings, inputs, y, rng, restricted=True)
    noise = _raised(optimum, inputs, n_rows)
    gamma = _choose_gamma(settings, optimum.kernel, noise, inputs, y)
    return Learnt(scaling, inputs, optimum.kernel, noise, gamma)


def fit_augmented(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> Fitted:
    """Hyperparameters chosen inside the bag, from candidates that do not depend on the ranked rows."""
    if _searches(settings, y.size):
        return _fit_searched(settings, X, y)
    named = [kernel for kernel in settings.kernels if isinstance(kernel, str)]
    proposes = settings.candidates is None and len(named) < len(settings.kernels)
    design = _no_rows()
    if proposes or settings.design is not None or len(settings.gammas) > 1:
        design = _design_rows(settings, X, _proposing_share(settings, y.size), rng)
    candidates, gamma, scaling = _candidates(settings, X, y, design, named, rng)
    origin = "fixed beforehand" if design.size == 0 else f"proposed by {design.size} design rows, which are not ranked"
    guarantee = (
        f"Exact: hyperparameters are chosen inside the bag from {len(candidates)} candidates {origin}, so {PROMISE}."
    )
    recipe = Recipe(candidates, settings.mean, scaling, gamma, guarantee, design, inside_bag=True)
    _warn_if_explained(Inputs(X, scaling or Scaling.standard(X), settings.mean), y, settings.mean)
    return rebuild(recipe, X, y, settings.n_jobs)


def _searches(settings: Settings, n_rows: int) -> bool:
    """Whether length scales are searched: for one kernel that has nothing else to learn, where that is affordable."""
    alone = len(settings.kernels) == len(settings.gammas) == 1 and settings.candidates is None
    kernel = settings.kernels[0]
    if not alone or settings.design is not None or isinstance(kernel, str) or n_rows > ROWS_FOR_OBJECTS:
        return False
    return has_patterns(kernel) and Patterns(kernel).n_inputs <= INPUTS_FOR_SEARCH


def _fit_searched(settings: Settings, X: Array, y: Array) -> Fitted:
    """Length scales for each input, found inside the bag."""
    kernel = clone(settings.kernels[0])
    scaling = None if settings.scale_inputs else Scaling.none(X)
    inputs = Inputs(X, scaling or Scaling.standard(X), settings.mean)
    _check_kernel(kernel, inputs)
    _warn_if_explained(inputs, y, settings.mean)
    guarantee = (
        "Exact: hyperparameters are chosen inside the bag, by a search for the inputs that matter which treats all "
        f"its rows alike, so {PROMISE}."
    )
    recipe = Recipe([], settings.mean, scaling, settings.gammas[0], guarantee, inside_bag=True, searched=kernel)
    return rebuild(recipe, X, y, settings.n_jobs)


def rebuild(recipe: Recipe, X: Array, y: Array, n_jobs: int | None) -> Fitted:
    """Carry out a recipe on its training rows; nothing is learnt."""
    if recipe.inside_bag:
        return _inside_bag(recipe, X, y, n_jobs)
    if recipe.scaling is None:
        raise ValueError("scaling must be given outside the bag, got None.")
    return _single(recipe, Inputs(X, recipe.scaling, recipe.mean), y, n_jobs)


PROMISE = (
    "for exchangeable rows the region of level 1 - delta holds the label of a new row with probability at least "
    "1 - delta"
)


def _only(values: list[T], name: str, tuning: str) -> T:
    if len(values) > 1:
        raise ValueError(f"{name} must be a single value with tuning={tuning!r}, got {len(values)} to choose from.")
    return values[0]


def _single(recipe: Recipe, inputs: Inputs, y: Array, n_jobs: int | None) -> Fitted:
    ((kernel, noise, _),) = recipe.candidates
    posterior = Posterior(kernel, noise, inputs, y, flat_prior=recipe.flat_prior)
    return Fitted(
        recipe,
        SinglePredictor(inputs, posterior, recipe.ranked(y.size), recipe.gamma, n_jobs),
        kernel,
        noise,
        inputs.coefficients(posterior.coefficients),
        posterior.log_marginal_likelihood,
    )


def _inside_bag(recipe: Recipe, X: Array, y: Array, n_jobs: int | None) -> Fitted:
    stationary = all(candidate.kernel.is_stationary() for candidate in recipe.candidates)  # searched kernels are
    predictor = AugmentedPredictor(
        recipe.candidates if recipe.searched is None else Patterns(recipe.searched),
        X,
        y,
        SymmetricScaling(X, stationary) if recipe.scaling is None else recipe.scaling,
        recipe.mean,
        recipe.ranked(y.size),
        recipe.gamma,
        n_jobs,
    )
    best = predictor.main.choice()
    bounds = (1e-6 * best.amplitude, 1e6 * best.amplitude)
    return Fitted(
        recipe,
        predictor,
        ConstantKernel(best.amplitude, bounds) * best.kernel,
        best.noise_variance * best.amplitude,
        best.coefficients,
        best.log_likelihood,
    )


def _scaling(settings: Settings, X: Array) -> Scaling:
    return Scaling.standard(X) if settings.scale_inputs else Scaling.none(X)


def _label_variance(inputs: Inputs, y: Array) -> float:
    """Mean square of the labels about their mean function; 0 when that is rounding."""
    residual = y - inputs.H @ (inputs.H.T @ y)  # H has orthonormal columns
    variance, size = float(np.mean(residual**2)), float(np.mean(y**2))
    return variance if variance > 1e-26 * size else 0.0


def _warn_if_explained(inputs: Inputs, y: Array, mean: str) -> None:
    if _label_variance(inputs, y) == 0.0:
        warnings.warn(
            f"y is reproduced exactly by mean={mean!r}: the intervals have no width.", UserWarning, stacklevel=5
        )


def _learn(
    settings: Settings, inputs: Inputs, y: Array, rng: np.random.RandomState, *, restricted: bool, warn: bool = True
) -> Optimum:
    """Maximum likelihood; the best of several kernels when there are several."""
    variance = _label_variance(inputs, y)
    starts = [_start(settings, kernel, inputs, variance or 1.0) for kernel in settings.kernels]
    if variance == 0.0:
        _warn_if_explained(inputs, y, settings.mean)
        return Optimum(*starts[0], np.inf)
    optima = []
    for start in starts:
        optimum = maximise_likelihood(
            *start,
            inputs.pairs.X,
            y,
            inputs.H,
            label_variance=variance,
            restricted=restricted,
            n_restarts=settings.n_restarts,
            random_state=rng,
            n_jobs=settings.n_jobs,
            warn=warn,
        )
        optima.append(optimum)
    return max(optima, key=lambda optimum: optimum.log_marginal_likelihood)


def _start(settings: Settings, kernel: str | Kernel, inputs: Inputs, variance: float) -> tuple[Kernel, float]:
    """Kernel and noise variance to start from, at the scale of the data."""
    noise = 0.1 * variance if settings.noise_variance is None else settings.noise_variance
    if isinstance(kernel, str):
        # the root mean square distance between rows, over the square root of two
        spread = float(np.sqrt(inputs.pairs.X.var(axis=0).sum())) or 1.0
        return kernel_from_name(kernel, amplitude=variance, length_scale=spread), noise
    kernel = clone(kernel)
    _check_kernel(kernel, inputs)
    return kernel, noise


def _check_kernel(kernel: Kernel, inputs: Inputs) -> None:
    X = inputs.pairs.X
    try:
        kernel(X[:1])
    except ValueError as error:
        raise ValueError(f"kernel {kernel} does not take {X.shape[1]} inputs: {error}") from error


def _raised(optimum: Optimum, inputs: Inputs, n_rows: int) -> float:
    """Learnt noise, raised where the covariance matrix of ``n_rows`` rows would be numerically singular.

    The size of that matrix is judged from the rows that taught the hyperparameters, so no other row has a say.
    """
    most = n_rows * float(optimum.kernel.diag(inputs.pairs.X).max())  # no covariance exceeds the largest variance
    if optimum.noise_variance >= noise_floor(most):
        return optimum.noise_variance
    K = inputs.pairs.lower(covariance(optimum.kernel, inputs.pairs)[0])
    floor = noise_floor(norm_of_lower(K) * n_rows / K.shape[0])
    if optimum.noise_variance >= floor or optimum.noise_variance == 0.0:  # 0: the kernel has noise of its own
        return optimum.noise_variance
    warnings.warn(
        f"The covariance matrix was numerically singular: the noise variance was raised from "
        f"{optimum.noise_variance:.1e} to {floor:.1e}.",
        UserWarning,
        stacklevel=5,
    )
    return floor


def _warn_if_few_rows(kernel: Kernel, inputs: Inputs, n_rows: int) -> None:
    """Say what to expect where training-row tuning is known to fall short."""
    learnt = kernel.n_dims + 1 + inputs.H.shape[1]
    share = learnt / n_rows
    if share >= MEASURED_COVERAGE[0][0]:
        shares, coverages = np.transpose(MEASURED_COVERAGE)
        expected = float(np.interp(share, shares, coverages))
        warnings.warn(
            f"tuning='train' learns {learnt} numbers from {n_rows} rows; with such a share, intervals of nominal 90% "
            f"held about {expected:.0%} of the labels in simulations (docs/guarantee.md). tuning='auto' keeps the "
            "level.",
            UserWarning,
            stacklevel=5,
        )


def _design_rows(settings: Settings, X: Array, share: float, rng: np.random.RandomState) -> Rows:
    """Rows to learn from: given, or at random."""
    l, d = X.shape
    if isinstance(settings.design, np.ndarray):
        return settings.design
    if settings.design is None:
        size = _even_size(share, l, _fewest_design_rows(settings.mean, d))
    else:
        size = int(np.ceil(settings.design * l))
    return draw_design(settings.mean, size, l, d, rng)


def _proposing_share(settings: Settings, n_rows: int) -> float:
    """Share of design rows where they propose candidates; it depends on the kernels and the number of rows alone."""
    most = max((kernel.n_dims for kernel in settings.kernels if isinstance(kernel, Kernel)), default=0)
    return float(np.clip(PROPOSING_ROWS * most / n_rows, *PROPOSING_SHARES))


def _even_size(share: float, n_rows: int, fewest: int) -> int:
    """Number of design rows near a share that makes the number of ranked rows, and one, a multiple of 20.

    Levels like 80, 90 and 95% are then met exactly: ranks are whole numbers, and rounding them makes intervals wider.
    Of few rows it is a multiple of 10.

    >>> _even_size(1 / 2, 150, fewest=5)  # 79 are ranked
    71
    """
    step = 20 if n_rows >= 60 else 10
    even = np.arange(step - 1, n_rows - fewest + 1, step)
    if even.size == 0:
        return int(np.ceil(share * n_rows))
    return n_rows - int(even[np.argmin(np.abs(even - (1.0 - share) * n_rows))])


def _fewest_design_rows(mean: str, n_features: int) -> int:
    """Coefficients of the mean function, and three more."""
    return {"zero": 0, "constant": 1, "linear": 1 + n_features}[mean] + 3


def draw_design(mean: str, size: int, n_rows: int, n_features: int, rng: np.random.RandomState) -> Rows:
    """Design rows at random: so many, or as many as the mean function needs."""
    fewest = _fewest_design_rows(mean, n_features)
    size = max(size, fewest)
    if size >= n_rows:
        raise ValueError(
            f"mean={mean!r} has {fewest - 3} coefficients and needs {fewest} design rows, which leaves none to rank of "
            f"n_samples={n_rows}; use mean='constant' or mean='zero'."
        )
    return np.sort(rng.permutation(n_rows)[:size])


def _choose_gamma(settings: Settings, kernel: Kernel, noise: float, inputs: Inputs, y: Array) -> float:
    """The gamma of narrowest intervals among the design rows."""
    if len(settings.gammas) == 1:
        return settings.gammas[0]
    posterior = Posterior(kernel, noise, inputs, y, flat_prior=True)
    return narrowest_gamma(posterior.alpha, posterior.diagonal, settings.gammas, read_level(0.9))


def _candidates(
    settings: Settings, X: Array, y: Array, design: Rows, named: list[str], rng: np.random.RandomState
) -> tuple[list[Candidate], float, Scaling | None]:
    """Candidates, gamma and scaling of the augmented way; None scales by all rows of the bag."""
    candidates = settings.candidates or [c for name in named for c in lattice(name, X.shape[1])]
    gamma = settings.gammas[0]
    scaling = None if settings.scale_inputs else Scaling.none(X)
    if design.size == 0:
        return candidates, gamma, scaling
    inputs = Inputs(X[design], _scaling(settings, X[design]), settings.mean)
    proposes = settings.candidates is None and len(named) < len(settings.kernels)
    chooses = len(settings.gammas) > 1
    if proposes or chooses:
        optimum = _learn(settings, inputs, y[design], rng, restricted=True, warn=False)  # only a proposal
    if proposes:
        given = [kernel for kernel in settings.kernels if not isinstance(kernel, str)]
        candidates = candidates + proposed(optimum.kernel, inputs.pairs.X, rng)
        candidates += [candidate for kernel in given for candidate in stretched(kernel, inputs.pairs.X)]
    if chooses:
        gamma = _choose_gamma(settings, optimum.kernel, _raised(optimum, inputs, y.size), inputs, y[design])
    return candidates, gamma, scaling
