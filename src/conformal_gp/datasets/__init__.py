"""Data sets: four benchmarks that come with the package."""

import csv
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

__all__ = ["load_auto_mpg", "load_boston", "load_cpu", "load_servo"]

DATA_MODULE = "conformal_gp.datasets.data"


def _load(name: str, text: tuple[str, ...], **options: Any) -> Any:
    """One bundled data set, whose inputs ``text`` are text, by the options of the public loaders."""
    for argument, value in options.items():
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{argument} must be True or False, got {value!r}.")
    folder = files(DATA_MODULE)
    header, *rows = csv.reader(folder.joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines())
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    *feature_names, target_name = header
    categories = {feature: sorted(set(columns[feature])) for feature in text}
    inputs: dict[str, Any] = {}
    for feature in feature_names:
        if feature not in text:
            inputs[feature] = np.array(columns[feature], dtype=float)
        elif options["as_frame"]:
            inputs[feature] = columns[feature]
        else:
            inputs[feature] = np.searchsorted(categories[feature], columns[feature]).astype(float)
    target: Any = np.array(columns[target_name], dtype=float)
    data: Any
    frame = None
    if options["as_frame"]:
        try:
            import pandas
        except ImportError as error:
            raise ImportError(f"load_{name} needs pandas when as_frame=True: pip install pandas.") from error
        data, target = pandas.DataFrame(inputs), pandas.Series(target, name=target_name)
        frame = data.assign(**{target_name: target})
    else:
        data = np.column_stack([*inputs.values()])
    if options["return_X_y"]:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=feature_names,
        target_names=[target_name],
        categories=categories,
        DESCR=folder.joinpath(f"{name}.rst").read_text(encoding="utf-8"),
        filename=f"{name}.csv",
        data_module=DATA_MODULE,
    )


def load_auto_mpg(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Auto MPG data set: 392 rows, 7 inputs.

    The target is the fuel consumption of a car in miles per gallon. The 6 rows of the source without horsepower are
    dropped, and so is the car name.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Give the inputs as a pandas DataFrame, with text as it is, and the target as a Series. This needs pandas.
        Arrays have codes instead of text, in alphabetical order. This data set has no text: ``origin`` is a number in
        the source (1 USA, 2 Europe, 3 Japan).

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`, or tuple (data, target) if ``return_X_y=True``
        A dictionary with the attributes ``data``, inputs of shape (392, 7), ``target``, ``frame`` (both in one, with
        ``as_frame=True``), ``feature_names``, ``target_names``, ``categories`` (for each input of text the values that
        the codes stand for), ``DESCR`` (origin, columns, licence and caveats), ``filename`` and ``data_module``.

    Examples
    --------
    >>> from conformal_gp.datasets import load_auto_mpg
    >>> X, y = load_auto_mpg(return_X_y=True)
    >>> X.shape, y.shape
    ((392, 7), (392,))
    >>> load_auto_mpg().feature_names
    ['cylinders', 'displacement', 'horsepower', 'weight', 'acceleration', 'model_year', 'origin']
    """
    return _load("auto_mpg", (), return_X_y=return_X_y, as_frame=as_frame)


def load_boston(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Boston house price data set: 506 rows, 13 inputs, no text.

    The target is the median house value of a census tract in thousands of dollars. Parameters and result are those of
    :func:`load_auto_mpg`.

    .. warning::
        The input ``b`` encodes race: it is computed from the proportion of Black residents of the town. The set is here
        only because published results that this project reproduces were computed on it. For anything else take another
        data set, such as :func:`sklearn.datasets.fetch_california_housing`.

    Examples
    --------
    >>> from conformal_gp.datasets import load_boston
    >>> boston = load_boston()
    >>> boston.data.shape, boston.feature_names[:5], boston.target_names
    ((506, 13), ['crim', 'zn', 'indus', 'chas', 'nox'], ['medv'])
    """
    return _load("boston", (), return_X_y=return_X_y, as_frame=as_frame)


def load_cpu(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the CPU performance data set: 209 rows, 7 inputs, one of them text.

    The target is the published relative performance (PRP) of a processor; ``vendor`` is text. Parameters and result are
    those of :func:`load_auto_mpg`.

    Examples
    --------
    >>> from conformal_gp.datasets import load_cpu
    >>> load_cpu().data[:2, :3].tolist()
    [[0.0, 125.0, 256.0], [1.0, 29.0, 8000.0]]
    >>> load_cpu().categories["vendor"][:2]
    ['adviser', 'amdahl']
    """
    return _load("cpu", ("vendor",), return_X_y=return_X_y, as_frame=as_frame)


def load_servo(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Servo data set: 167 rows, 4 inputs, two of them text.

    The target is the rise time of a servo mechanism in seconds; the source names it ``class``, but it is continuous.
    ``motor`` and ``screw`` are letters. Parameters and result are those of :func:`load_auto_mpg`.

    Examples
    --------
    >>> from conformal_gp.datasets import load_servo
    >>> servo = load_servo()
    >>> servo.data.shape, servo.feature_names, servo.target_names
    ((167, 4), ['motor', 'screw', 'pgain', 'vgain'], ['class'])
    >>> servo.data[:2].tolist(), load_servo(as_frame=True).data["motor"][0]
    ([[4.0, 4.0, 5.0, 4.0], [1.0, 3.0, 6.0, 5.0]], 'E')
    """
    return _load("servo", ("motor", "screw"), return_X_y=return_X_y, as_frame=as_frame)
