"""Tables in files: read by header, turned into inputs and labels, written back with predictions.

Needs pandas and PyArrow (``pip install 'conformal-gp[cli]'``).
"""

from conformal_gp.tables.columns import Columns, DesignMatrix
from conformal_gp.tables.errors import TableError
from conformal_gp.tables.reading import read_table
from conformal_gp.tables.table import Table
from conformal_gp.tables.writing import write_table

__all__ = ["Columns", "DesignMatrix", "Table", "TableError", "read_table", "write_table"]
