"""``python -m conformal_gp`` is the command ``conformal-gp``."""

from conformal_gp.cli import main

if __name__ == "__main__":
    main()
