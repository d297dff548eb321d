"""What regressors learnt, as JSON and back."""

from __future__ import annotations

from typing import Any

from conformal_gp.fitting import Recipe
from conformal_gp.gp.candidates import Candidate
from conformal_gp.gp.scaling import Scaling
from conformal_gp.persistence.values import from_json, to_json
from conformal_gp.sparse import LowRankRecipe


def exact_to_json(recipe: Recipe) -> dict[str, Any]:
    """Write the recipe of the exact regressor."""
    return {
        "candidates": [
            [to_json(c.kernel, "kernel"), to_json(c.noise_variance, "noise"), to_json(c.handicap, "handicap")]
            for c in recipe.candidates
        ],
        "mean": recipe.mean,
        "scaling": None if recipe.scaling is None else _scaling_to_json(recipe.scaling),
        "gamma": to_json(recipe.gamma, "gamma"),
        "guarantee": recipe.guarantee,
        "design": to_json(recipe.design, "design"),
        "inside_bag": recipe.inside_bag,
        "searched": None if recipe.searched is None else to_json(recipe.searched, "kernel"),
        "flat_prior": recipe.flat_prior,
    }


def exact_from_json(document: dict[str, Any]) -> Recipe:
    """Read what :func:`exact_to_json` wrote."""
    return Recipe(
        [Candidate(*map(from_json, candidate)) for candidate in document["candidates"]],
        document["mean"],
        None if document["scaling"] is None else _scaling_from_json(document["scaling"]),
        from_json(document["gamma"]),
        document["guarantee"],
        from_json(document["design"]),
        document["inside_bag"],
        from_json(document["searched"]) if document.get("searched") else None,  # not in format 1
        document["flat_prior"],
    )


def low_rank_to_json(recipe: LowRankRecipe) -> dict[str, Any]:
    """Write the recipe of the low-rank regressor."""
    return {
        "kernel": to_json(recipe.kernel, "kernel"),
        "noise_variance": to_json(recipe.noise_variance, "noise_variance"),
        "scaling": _scaling_to_json(recipe.scaling),
        "mean": recipe.mean,
        "gamma": to_json(recipe.gamma, "gamma"),
        "inducing": to_json(recipe.inducing, "inducing"),
        "approximation": recipe.approximation,
        "design": to_json(recipe.design, "design"),
        "guarantee": recipe.guarantee,
    }


def low_rank_from_json(document: dict[str, Any]) -> LowRankRecipe:
    """Read what :func:`low_rank_to_json` wrote."""
    return LowRankRecipe(
        from_json(document["kernel"]),
        from_json(document["noise_variance"]),
        _scaling_from_json(document["scaling"]),
        document["mean"],
        from_json(document["gamma"]),
        from_json(document["inducing"]),
        document["approximation"],
        from_json(document["design"]),
        document["guarantee"],
    )


def _scaling_to_json(scaling: Scaling) -> Any:
    return to_json((scaling.location, scaling.scale), "scaling")


def _scaling_from_json(document: Any) -> Scaling:
    return Scaling(*from_json(document))
