"""The face of the package: its names and rooms, in any order and without a heavy import."""

import subprocess
import sys

import lgfed_core


def test_what_the_face_lists_is_there():
    for name in dir(lgfed_core):
        assert getattr(lgfed_core, name) is not None, name


def test_a_room_is_there_before_anybody_has_imported_it():
    code = (
        "import sys, lgfed_core; assert 'torch' not in sys.modules and 'run' in dir(lgfed_core); "
        "assert lgfed_core.partition.Partition is lgfed_core.Partition"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
