"""What pyproject.toml cannot say: a wheel carries lists, numbers and rows of ``data/``.

They lie beside the package in a checkout and inside it in a wheel, as ``lgfed_core/_data``
(lgfed_core/paths.py). An editable installation has none: it reads the checkout's.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CARRIED = ("sources.toml", "paper/*.csv", "paper/errata.toml", "results/*.csv")


class WithData(build_py):
    """Copy what a wheel carries into the package that is being built."""

    def run(self):
        super().run()
        for pattern in () if self.editable_mode else CARRIED:
            for path in sorted(Path("data").glob(pattern)):
                target = Path(self.build_lib, "lgfed_core", "_data", path.relative_to("data"))
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": WithData})
