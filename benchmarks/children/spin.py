"""Keep one core busy until the parent process ends this one, or is gone."""

import os

parent = os.getppid()
while os.getppid() == parent:
    for _ in range(10**6):
        pass
