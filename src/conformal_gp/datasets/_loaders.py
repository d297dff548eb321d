"""Loaders of the four benchmark data sets."""

from typing import Any

from conformal_gp.datasets._base import load_bundled


def load_auto_mpg(*, return_X_y: bool = False, as_frame: bool = False, raw: bool = False) -> Any:
    """Load the Auto MPG data set: 392 rows, 7 inputs.

    The target is the fuel consumption of a car in miles per gallon. The 6 rows of the source without
    horsepower are dropped, and so is the car name.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Give the inputs as a pandas DataFrame and the target as a Series. This needs pandas.
    raw : bool, default=False
        As in the other loaders. It changes nothing: no input of this data set is text, and ``origin`` is a number in
        the source (1 USA, 2 Europe, 3 Japan).

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        A dictionary with the attributes

        data : ndarray or DataFrame of shape (392, 7)
            The inputs.
        target : ndarray or Series of shape (392,)
            Miles per gallon.
        frame : DataFrame of shape (392, 8), or None unless ``as_frame=True``
            The inputs and the target, as the last column.
        feature_names : list of str
            The names of the inputs, in column order.
        target_names : list of str
            The name of the target, its one item.
        categories : dict
            Empty: no input of this set is text.
        DESCR : str
            Origin, size, columns, licence and caveats.
        filename : str
            The data file, in the package that ``data_module`` names.
        data_module : str
            The package that holds the data file.

    (data, target) : tuple, if ``return_X_y=True``
        The inputs and the target only.

    Examples
    --------
    >>> from conformal_gp.datasets import load_auto_mpg
    >>> X, y = load_auto_mpg(return_X_y=True)
    >>> X.shape, y.shape
    ((392, 7), (392,))
    >>> load_auto_mpg().feature_names
    ['cylinders', 'displacement', 'horsepower', 'weight', 'acceleration', 'model_year', 'origin']
    """
    return load_bundled("auto_mpg", return_X_y=return_X_y, as_frame=as_frame, raw=raw)


def load_boston(*, return_X_y: bool = False, as_frame: bool = False, raw: bool = False) -> Any:
    """Load the Boston house price data set: 506 rows, 13 inputs.

    The target is the median house value of a census tract in thousands of dollars.

    .. warning::
        The input ``b`` encodes race: it is computed from the proportion of Black residents of the town. The
        set is here only because published results that this package reproduces were computed on it. For
        anything else take another data set, such as :func:`sklearn.datasets.fetch_california_housing`.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in :func:`load_auto_mpg`.
    raw : bool, default=False
        As in the other loaders. It changes nothing: no input of this data set is text.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`, or tuple (data, target) if ``return_X_y=True``
        As in :func:`load_auto_mpg`: ``data`` has shape (506, 13) and ``target`` is the median house value in thousands
        of dollars.

    Examples
    --------
    >>> from conformal_gp.datasets import load_boston
    >>> boston = load_boston()
    >>> boston.data.shape, boston.target.shape
    ((506, 13), (506,))
    >>> boston.feature_names[:5], boston.target_names
    (['crim', 'zn', 'indus', 'chas', 'nox'], ['medv'])
    >>> "encodes race" in boston.DESCR
    True
    """
    return load_bundled("boston", return_X_y=return_X_y, as_frame=as_frame, raw=raw)


def load_cpu(*, return_X_y: bool = False, as_frame: bool = False, raw: bool = False) -> Any:
    """Load the CPU performance data set: 209 rows, 7 inputs, one of them text.

    The target is the published relative performance (PRP) of a processor. The text input ``vendor`` is given
    as integer codes in alphabetical order, unless ``raw=True``.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in :func:`load_auto_mpg`.
    raw : bool, default=False
        Give the vendors by name. ``data`` is then an array of dtype object, or a frame with a column of
        strings.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`, or tuple (data, target) if ``return_X_y=True``
        As in :func:`load_auto_mpg`: ``data`` has shape (209, 7) and ``target`` is the published relative performance.
        ``categories["vendor"]`` lists the 30 names in alphabetical order; code ``i`` stands for item ``i``.

    Examples
    --------
    >>> from conformal_gp.datasets import load_cpu
    >>> cpu = load_cpu()
    >>> cpu.data.shape, cpu.target.shape
    ((209, 7), (209,))
    >>> cpu.data[:2, :3].tolist()
    [[0.0, 125.0, 256.0], [1.0, 29.0, 8000.0]]
    >>> load_cpu(raw=True).data[:2, :3].tolist()
    [['adviser', 125.0, 256.0], ['amdahl', 29.0, 8000.0]]
    >>> cpu.categories["vendor"][:2]
    ['adviser', 'amdahl']
    """
    return load_bundled("cpu", text=("vendor",), return_X_y=return_X_y, as_frame=as_frame, raw=raw)


def load_servo(*, return_X_y: bool = False, as_frame: bool = False, raw: bool = False) -> Any:
    """Load the Servo data set: 167 rows, 4 inputs, two of them text.

    The target is the rise time of a servo mechanism in seconds; the source names it ``class``, but it is
    continuous. The text inputs ``motor`` and ``screw`` are given as integer codes in alphabetical order,
    unless ``raw=True``.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in :func:`load_auto_mpg`.
    raw : bool, default=False
        Give motor and screw as letters. ``data`` is then an array of dtype object, or a frame with columns of
        strings.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`, or tuple (data, target) if ``return_X_y=True``
        As in :func:`load_auto_mpg`: ``data`` has shape (167, 4) and ``target`` is the rise time in seconds.
        ``categories["motor"]`` and ``categories["screw"]`` list the letters in alphabetical order; code ``i`` stands
        for item ``i``.

    Examples
    --------
    >>> from conformal_gp.datasets import load_servo
    >>> servo = load_servo()
    >>> servo.data.shape, servo.target.shape
    ((167, 4), (167,))
    >>> servo.data[:2].tolist()
    [[4.0, 4.0, 5.0, 4.0], [1.0, 3.0, 6.0, 5.0]]
    >>> load_servo(raw=True).data[:2].tolist()
    [['E', 'E', 5.0, 4.0], ['B', 'D', 6.0, 5.0]]
    >>> servo.feature_names, servo.target_names
    (['motor', 'screw', 'pgain', 'vgain'], ['class'])
    """
    return load_bundled("servo", text=("motor", "screw"), return_X_y=return_X_y, as_frame=as_frame, raw=raw)
