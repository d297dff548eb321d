"""Which training rows a test row is ranked among, and with what weights, for both regressors."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from conformal_gp.frames import Encoding
from conformal_gp.gp.inputs import Points
from conformal_gp.groups import Groups
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.ranked import Part, RankedRows
from conformal_gp.ratios import as_given, check_ratios, effective_rows, split_ratio, warn_if_few
from conformal_gp.types import Array

GroupsLike = ArrayLike | str | Callable[[Any], ArrayLike] | None
RatioLike = Callable[[Any], ArrayLike] | tuple[ArrayLike, ArrayLike] | None


class Comparisons:
    """Groups and likelihood ratios of both regressors: see ``docs/groups_and_shifts.md``."""

    _predictor: Predictor
    _group_predictors: list[Predictor]
    _groups: Groups | None = None
    _encoding: Encoding | None = None
    _frame: str | None = None

    @abstractmethod
    def _test_inputs(self, X: Any, noise_variance: Any = None, needs_noise: bool = True, stacklevel: int = 3) -> Points:
        """Test rows for a method that a user called."""

    @abstractmethod
    def _each_training_row(self, function: Callable[[Points, Array], Array]) -> Array:
        """Values of a function of inputs and labels, one for each training row."""

    def _input_names(self) -> NDArray[Any] | None:
        """Names of the inputs, where columns had names."""

    def _learn_groups(self, X: Any, groups: GroupsLike, unseen_groups: str) -> Any:
        """Keep the groups of training rows; X without a column that gives groups and is no input."""
        self._groups = None if groups is None else Groups.learn(X, groups, unseen_groups)
        return self._inputs_of(X)

    def _inputs_of(self, X: Any) -> Any:
        """X without a column that gives groups and is no input."""
        return X if self._groups is None else self._groups.inputs(X)

    def _set_predictor(self, predictor: Predictor) -> None:
        """Keep the predictor, and what of it ranks among the rows of each group."""
        self._predictor = predictor
        codes = np.empty(0) if self._groups is None else self._groups.codes[predictor.ranked]
        groups = [] if self._groups is None else self._groups.labels
        self._group_predictors = [predictor.among(predictor.ranked[codes == code]) for code in range(len(groups))]

    @property
    def _most_ranked(self) -> int:
        """Most training rows that a test row is ranked among."""
        return max((each.n_ranked for each in self._group_predictors), default=self._predictor.n_ranked)

    def _ranked_rows(self, X: Any, noise_variance: Any, groups: GroupsLike, likelihood_ratio: RatioLike) -> RankedRows:
        """Test rows for a method that a user called, with the training rows that each is ranked among."""
        new = self._test_inputs(X, noise_variance, stacklevel=4)
        parts = self._parts(X, groups, len(new.X))
        if likelihood_ratio is None:
            return RankedRows(new, parts)
        training, test = split_ratio(likelihood_ratio)
        weights = self._training_ratios(training)
        own = check_ratios(test(X) if callable(test) else test, len(new.X), "test")
        unit = max(weights[self._predictor.ranked].max(), own.max())  # ratios that are equal become 1, without rounding
        weights, own = weights / unit, own / unit
        weighted = []
        for part in parts:
            of_ranked, of_new = weights[part.predictor.ranked], own[part.members]
            warn_if_few(effective_rows(of_ranked), of_ranked.size, part.name, stacklevel=3)
            of_new = np.where(of_ranked.sum() + of_new > 0.0, of_new, 1.0)  # nothing is known of a row without weights
            weighted.append(part._replace(weights=of_ranked, own=of_new))
        return RankedRows(new, weighted)

    def _parts(self, X: Any, groups: GroupsLike, n_new: int) -> list[Part]:
        """Test rows by their groups, or in one part."""
        everyone = Part("the model", self._predictor, np.arange(n_new))
        self._need_groups(groups)
        if self._groups is None:
            return [everyone]
        codes = self._groups.of(X, groups, n_new)
        unseen = np.flatnonzero(codes < 0)
        if unseen.size:
            warnings.warn(
                f"{unseen.size} of {n_new} rows are of groups that fit did not see; they are ranked among all rows, "
                "and coverage is not promised in their groups.",
                UserWarning,
                stacklevel=4,
            )
        parts = [everyone._replace(members=unseen)] if unseen.size else []
        for code in np.unique(codes[codes >= 0]):
            name, members = f"group {self._groups.labels[code]!r}", np.flatnonzero(codes == code)
            parts.append(Part(name, self._group_predictors[code], members))
        return parts

    def _need_groups(self, groups: GroupsLike) -> None:
        """Refuse groups of other rows where the training rows have none."""
        if self._groups is None and groups is not None:
            raise ValueError("groups of other rows are taken if fit was given those of the training rows.")

    def _training_ratios(self, ratio: Any) -> Array:
        """Likelihood ratios of all training rows, from a function of X or as they are given."""
        if not callable(ratio):
            ratios = check_ratios(ratio, self._predictor.n_rows, "training")
        elif self._encoding is not None or (self._groups is not None and self._groups.left_out is not None):
            raise ValueError(
                "likelihood_ratio must be a pair of arrays, for the training rows and for the test rows, as fit was "
                "given a frame with columns that are not numbers, which the model does not keep."
            )
        else:
            names, frame = self._input_names(), self._frame  # a cluster gets these, not the model
            ratios = self._each_training_row(
                lambda rows, y: check_ratios(ratio(as_given(rows.X, names, frame)), y.size, "training")
            )
        if not ratios[self._predictor.ranked].any():
            raise ValueError("likelihood_ratio is 0 for all ranked rows: test rows are nowhere where these are.")
        return ratios

    def effective_rows(self, likelihood_ratio: RatioLike) -> float | dict[Any, float]:
        r"""How many ranked rows are left in effect, under a likelihood ratio.

        Parameters
        ----------
        likelihood_ratio : callable or pair of arrays
            As in :meth:`predict_interval`; of a pair, only the training rows' ratios are looked at.

        Returns
        -------
        n_effective : float, or dict from group to float
            :math:`(\sum w)^2 / \sum w^2` over the ranked rows; of each group, where ``fit`` was given groups. With
            equal ratios it is their number, and it falls to 1 as one row outweighs the others.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> model.effective_rows(lambda X: X[:, 0])
        1.8
        """
        check_is_fitted(self)
        weights = self._training_ratios(split_ratio(likelihood_ratio)[0])
        if self._groups is None:
            return effective_rows(weights[self._predictor.ranked])
        found = [effective_rows(weights[predictor.ranked]) for predictor in self._group_predictors]
        return dict(zip(self._groups.labels, found, strict=True))
