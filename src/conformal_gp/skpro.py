"""The regressors behind skpro's interface for probabilistic regression; needs the extra ``skpro``."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.base import clone

from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor

try:
    from skpro.distributions.empirical import Empirical
    from skpro.regression.base import BaseProbaRegressor
    from skpro.utils.sklearn import prep_skl_df
except ImportError as error:
    raise ImportError("conformal_gp.skpro needs skpro: pip install 'conformal-gp[skpro]'") from error

__all__ = ["ConformalProbaRegressor"]


class ConformalProbaRegressor(BaseProbaRegressor):
    """Quantiles, intervals and distributions with guaranteed coverage, as a regressor of skpro.

    Quantiles are those of ``predict_quantiles`` of the regressor inside, and intervals those of two of them
    (``tails="equal"``), as skpro defines them: a label misses an interval of coverage c on either side with probability
    at most (1 - c) / 2. Distributions are skpro's ``Empirical``, with the steps of ``predict_distribution``; means and
    variances are theirs.

    Parameters
    ----------
    estimator : ConformalGPRegressor or SparseConformalGPRegressor, default=None
        The regressor inside; None is ``ConformalGPRegressor()``. It is cloned before it is fitted.

    Attributes
    ----------
    estimator_ : ConformalGPRegressor or SparseConformalGPRegressor
        The fitted regressor, with ``guarantee_`` and all its methods.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.skpro import ConformalProbaRegressor
    >>> X = pd.DataFrame({"time": np.linspace(0, 3, 40)})
    >>> y = pd.DataFrame({"level": np.sin(2 * X["time"]) + 0.1 * np.cos(50 * X["time"])})
    >>> inside = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False)
    >>> model = ConformalProbaRegressor(inside).fit(X, y)
    >>> quantiles = model.predict_quantiles(pd.DataFrame({"time": [1.0, 2.0]}), alpha=[0.1, 0.9])
    >>> quantiles["level"].round(2)
        0.1   0.9
    0  0.80  1.01
    1 -0.86 -0.66
    """

    # A mutable class attribute, as skpro asks for.
    _tags = {  # noqa: RUF012
        "authors": ["The conformal-gp developers"],
        "capability:missing": False,
        "capability:multioutput": False,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, estimator: ConformalGPRegressor | SparseConformalGPRegressor | None = None):
        self.estimator = estimator
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> ConformalProbaRegressor:
        if y.shape[1] != 1:
            raise ValueError(f"y must have one column, got {y.shape[1]}: fit one regressor for each.")
        regressor = ConformalGPRegressor() if self.estimator is None else clone(self.estimator)
        self.estimator_ = regressor.fit(prep_skl_df(X), y.iloc[:, 0].to_numpy())
        return self

    def _predict_quantiles(self, X: pd.DataFrame, alpha: list[float]) -> pd.DataFrame:
        values = self.estimator_.predict_quantiles(prep_skl_df(X), alpha)
        return pd.DataFrame(values, X.index, self._get_columns("predict_quantiles", alpha=alpha))

    def _predict_proba(self, X: pd.DataFrame) -> Empirical:
        steps = self.estimator_.predict_distribution(prep_skl_df(X)).steps
        names = self._get_columns("predict")
        labels = pd.MultiIndex.from_product([range(steps.shape[1]), X.index])
        return Empirical(pd.DataFrame(steps.T.reshape(-1, 1), labels, names), index=X.index, columns=pd.Index(names))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters for skpro's own tests: both regressors, the second without anything to learn.

        Examples
        --------
        >>> len(ConformalProbaRegressor.get_test_params())
        2
        """
        sparse = SparseConformalGPRegressor(tuning="fixed", noise_variance=1.0, design=8, n_inducing=5, random_state=0)
        return [{"estimator": ConformalGPRegressor(tuning="holdout", design=8, random_state=0)}, {"estimator": sparse}]
