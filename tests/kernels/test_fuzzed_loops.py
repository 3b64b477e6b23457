"""What a fuzzer found worth keeping for the compiled loops, replayed against slow definitions; see fuzzed_loops.c.

`make fuzz-loops` looks for more, and `make sanitize` runs this with the loops under sanitizers.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fuzzing import seeds
from truerank.kernels import library

SOURCE = Path(__file__).with_name("fuzzed_loops.c")


def test_every_function_is_fuzzed() -> None:
    names = {name.removesuffix("_float32").removesuffix("_float64") for name in library.ENTRIES}
    assert names <= set(re.findall(r"\w+", SOURCE.read_text()))


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.skipif(library.load() is None, reason="needs the compiled loops")
def test_replay(tmp_path: Path) -> None:
    loaded = library.load()
    assert loaded is not None
    built, loops = tmp_path / "replayed", Path(loaded._name)
    sanitized = ["-fsanitize=address,undefined"] if b"__asan_init" in loops.read_bytes() else []
    options = ["-std=c11", "-O1", "-DREPLAYED", *sanitized]
    subprocess.run(["cc", *options, SOURCE, loops, f"-Wl,-rpath,{loops.parent}", "-lm", "-o", built], check=True)
    inputs = [each[:64] for each in seeds("loops")]
    given = b"".join(bytes([len(each)]) + each for each in inputs)
    done = subprocess.run([built], input=given, capture_output=True, check=True)
    n_inputs, further = map(int, done.stdout.split())
    assert n_inputs == len(inputs) > 100
    assert further > n_inputs / 2  # most went past the first check
