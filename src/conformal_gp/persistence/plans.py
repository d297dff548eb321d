"""Plans of the regressors, as JSON and back."""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Any

from conformal_gp.gp.inputs import Scaling
from conformal_gp.gp.noise import Trend, VaryingNoise
from conformal_gp.gp.warps import BoxCox, YeoJohnson
from conformal_gp.persistence.values import from_json, to_json
from conformal_gp.tuning.low_rank import LowRankPlan
from conformal_gp.tuning.plan import Candidate, InsideBag, OneModel, Plan

PLANS: dict[str, type[Plan | LowRankPlan]] = {plan.__name__: plan for plan in (OneModel, InsideBag, LowRankPlan)}

WARPS: dict[str, type[BoxCox | YeoJohnson]] = {warp.__name__: warp for warp in (BoxCox, YeoJohnson)}
"""Maps of labels that a file can hold; a user's functions are code."""
LATER = ("warp", "varying", "varying_noise", "mean_coef")
"""Fields that files of earlier formats have not."""


def plan_to_json(plan: Plan | LowRankPlan) -> dict[str, Any]:
    """Write a plan: its kind, and each of its fields but warnings, which were issued."""
    values = {field.name: getattr(plan, field.name) for field in fields(plan) if field.name != "warnings"}
    if "scaling" in values:
        values["scaling"] = (values["scaling"].location, values["scaling"].scale)
    if "candidates" in values:
        values["candidates"] = [tuple(candidate) for candidate in values["candidates"]]
    if values["warp"] is not None:
        values["warp"] = (type(values["warp"]).__name__, *astuple(values["warp"]))
    if values.get("varying") is not None:
        values["varying"] = astuple(values["varying"])
    return {"kind": type(plan).__name__, **{name: to_json(value, name) for name, value in values.items()}}


def plan_from_json(document: dict[str, Any]) -> Plan | LowRankPlan:
    """Read what :func:`plan_to_json` wrote."""
    kind = PLANS[document["kind"]]
    names = [field.name for field in fields(kind) if field.name != "warnings"]
    values = {name: from_json(document[name]) for name in names if name in document or name not in LATER}
    if "scaling" in values:
        values["scaling"] = Scaling(*values["scaling"])
    if "candidates" in values:
        values["candidates"] = [Candidate(*candidate) for candidate in values["candidates"]]
    if values.get("warp") is not None:
        name, *numbers = values["warp"]
        values["warp"] = WARPS[name](*numbers)
    if values.get("varying") is not None:
        trend, *others = values["varying"]
        values["varying"] = VaryingNoise(Trend(*trend), *others)
    return kind(**values)
