"""The wheels that `make wheels` has left in dist/: tags, formats, symbols, and the loops that can be run here."""

import ctypes
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pytest

from tests.kernels.test_library import results
from truerank.kernels import library

ROOT = Path(__file__).parents[2]
X86 = ["x86-64", "x86-64-v3", "x86-64-v4-vnni"]
PLATFORMS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": ("ELF x86-64", X86, ".so"),
    "manylinux_2_17_aarch64.manylinux2014_aarch64": ("ELF arm64", ["arm64"], ".so"),
    "musllinux_1_2_x86_64": ("ELF x86-64", X86, ".so"),
    "musllinux_1_2_aarch64": ("ELF arm64", ["arm64"], ".so"),
    "macosx_11_0_arm64": ("Mach-O arm64", ["arm64"], ".dylib"),
    "macosx_11_0_x86_64": ("Mach-O x86-64", X86[:2], ".dylib"),
    "win_amd64": ("PE x86-64", X86[:2], ".dll"),
}


def wheel(platform: str) -> Path:
    found = list((ROOT / "dist").glob(f"truerank-*-py3-none-{platform}.whl"))
    if not found:
        pytest.skip(f"there is no wheel for {platform} in dist/; `make wheels` makes it")
    return found[0]


def kind(library: bytes) -> str:
    """Return the format of a shared library, and the processor it is for, from its first bytes."""
    if library[:4] == b"\x7fELF":
        assert library[4:6] == b"\x02\x01"  # 64 bits, the lower byte first
        assert struct.unpack_from("<H", library, 16)[0] == 3  # a shared object
        return "ELF " + {62: "x86-64", 183: "arm64"}[struct.unpack_from("<H", library, 18)[0]]
    if library[:4] == b"\xcf\xfa\xed\xfe":
        assert struct.unpack_from("<I", library, 12)[0] == 6  # a dynamic library
        return "Mach-O " + {0x01000007: "x86-64", 0x0100000C: "arm64"}[struct.unpack_from("<I", library, 4)[0]]
    assert library[:2] == b"MZ"
    start = struct.unpack_from("<I", library, 60)[0]
    assert library[start : start + 4] == b"PE\0\0"
    assert struct.unpack_from("<H", library, start + 22)[0] & 0x2000  # a DLL
    return "PE " + {0x8664: "x86-64", 0xAA64: "arm64"}[struct.unpack_from("<H", library, start + 4)[0]]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_wheel_holds_what_pages_are_made_of(platform: str) -> None:
    source = ROOT / "src"
    wanted = [path for folder in ("page", "vendor") for path in (source / "truerank/report" / folder).iterdir()]
    assert len(wanted) >= 14
    with zipfile.ZipFile(wheel(platform)) as files:
        for path in wanted:
            assert files.read(path.relative_to(source).as_posix()) == path.read_bytes()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_wheel_is_light(platform: str) -> None:
    assert wheel(platform).stat().st_size <= 1_200_000


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_wheel_holds_the_libraries_of_its_platform(platform: str) -> None:
    expected, variants, suffix = PLATFORMS[platform]
    with zipfile.ZipFile(wheel(platform)) as files:
        names = [name for name in files.namelist() if "kernels-" in name]
        assert sorted(names) == sorted(f"truerank/kernels/kernels-{variant}{suffix}" for variant in variants)
        for name in names:
            code = files.read(name)
            assert kind(code) == expected
            prefix = b"_" if "Mach-O" in expected else b""
            assert not [entry for entry in library.ENTRIES if b"\0" + prefix + entry.encode() + b"\0" not in code]
        about = next(name for name in files.namelist() if name.endswith(".dist-info/WHEEL"))
        text = files.read(about).decode()
    assert "Root-Is-Purelib: false" in text
    assert {line.split()[1] for line in text.splitlines() if line.startswith("Tag:")} == {
        f"py3-none-{tag}" for tag in platform.split(".")
    }


def test_the_linux_wheel_is_manylinux_compatible() -> None:
    pytest.importorskip("auditwheel")
    path = wheel("manylinux_2_17_x86_64.manylinux2014_x86_64")
    done = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", path], capture_output=True, text=True, check=True
    )
    assert 'consistent with the following platform tag:\n"manylinux_2_17_x86_64"' in done.stdout.replace("\n\n", "\n")


class Remote:
    """A library whose functions run in another process: arguments are sent there, and arrays come back."""

    def __init__(self, *command: Any) -> None:
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate()

    def __getattr__(self, entry: str) -> Any:
        return lambda *arguments: self.run(entry, arguments)

    def run(self, entry: str, arguments: tuple[Any, ...]) -> int:
        arrays: list[Any] = []
        sent = b"".join(encode(list(arguments), arrays))
        assert self.process.stdin
        self.process.stdin.write(number(len(entry)) + entry.encode() + sent)
        self.process.stdin.flush()
        returned = self.received(8)
        for array in arrays:
            got = np.frombuffer(self.received(array.nbytes), array.dtype)
            if array.flags.writeable:
                array[...] = got.reshape(array.shape)
        return int(np.frombuffer(returned, np.int64)[0])

    def received(self, size: int) -> bytes:
        assert self.process.stdout
        got = self.process.stdout.read(size)
        assert len(got) == size
        return got


def encode(arguments: list[Any], arrays: list[Any]) -> Iterator[bytes]:
    """Write arguments as remote.c reads them, and list the arrays among them."""
    yield number(len(arguments))
    for argument in arguments:
        if isinstance(argument, ctypes.Structure):
            yield number(-1)
            yield from encode(fields(argument), arrays)
        elif isinstance(argument, np.ndarray) and argument.size:
            arrays.append(argument)
            yield number(argument.nbytes) + argument.tobytes()
        else:  # an array without numbers is not read
            yield number(0) + number(int(argument) if isinstance(argument, int | np.integer) else 0)


def number(value: int) -> bytes:
    return struct.pack("<q", value)


def fields(structure: Any) -> list[Any]:
    """Return the fields, with arrays instead of their addresses; those of a structure inside follow one by one."""
    if isinstance(structure, library.BlockArgument):
        lists, results = structure.arrays
        return [structure.users, *fields(lists[0]), *fields(lists[1]), *results]
    if isinstance(structure, library.BestArgument):
        lists, (items, scores, found) = structure.arrays
        return [structure.users, structure.k, *fields(lists), scores, items, found]
    if isinstance(structure, library.ListsArgument):
        items, begin, end, next_ = structure.arrays
        return [items, structure.size, begin, end, next_]
    if isinstance(structure, library.HistoriesArgument):
        return [*fields(structure.arrays[0]), structure.arrays[1]]
    if isinstance(structure, library.DrawsArgument):
        return [structure.n_items, structure.users, structure.way, *structure.arrays]
    if isinstance(structure, library.OrderedArgument):
        return [structure.size, *structure.arrays]
    if isinstance(structure, library.RowsArgument):
        return [structure.count, structure.arrays[0], structure.arrays[1], structure.size]
    plain = np.ascontiguousarray(structure.arrays)
    return [plain, *plain.shape, plain.shape[1], 1]


class Elsewhere(NamedTuple):
    """A wheel whose loops another C library, an emulator or a layer of Windows can run here."""

    platform: str
    zig: str
    """What the program that calls the library is compiled for."""
    variant: str
    runner: str
    """The command that runs the program."""
    options: tuple[str, ...]
    packages: str
    """Debian's packages that have it."""


WINE = Elsewhere("win_amd64", "x86_64-windows-gnu", "x86-64", "wine", (), "wine and wine64")
UNPACKED = str(ROOT / "build/musl/lib/x86_64-linux-musl/libc.so")
MUSL = Elsewhere("musllinux_1_2_x86_64", "x86_64-linux-musl", "x86-64", UNPACKED, (), "musl, as .ci/run unpacks it")
ELSEWHERE = [
    Elsewhere(
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
        "aarch64-linux-gnu.2.17",
        "arm64",
        "qemu-aarch64",
        ("-L", "/usr/aarch64-linux-gnu"),
        "qemu-user and libc6-arm64-cross",
    ),
    *(place._replace(variant=variant) for place in (MUSL, WINE) for variant in PLATFORMS[place.platform][1]),
]


def remote(place: Elsewhere, folder: Path) -> Remote:
    """Return the library of the wheel, run elsewhere."""
    runner = shutil.which(place.runner)
    if not runner or not all(map(Path.exists, map(Path, place.options[1:]))):
        pytest.skip(f"{place.runner} is not installed (Debian's {place.packages})")
    name = f"truerank/kernels/kernels-{place.variant}{PLATFORMS[place.platform][2]}"
    with zipfile.ZipFile(wheel(place.platform)) as files:
        files.extract(name, folder)
    program = folder / "remote.exe"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-O1", "-target", place.zig, "-dynamic"]
    subprocess.run([*compiler, Path(__file__).with_name("remote.c"), "-o", program], check=True)
    return Remote(runner, *place.options, program, folder / name)


@pytest.mark.parametrize("place", ELSEWHERE, ids=lambda place: f"{place.zig}-{place.variant}")
def test_loops_of_other_systems_give_the_same_bits(
    place: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang", reason="zig compiles the program that calls the library")
    if place.variant in X86 and place.variant not in library.runnable():
        pytest.skip(f"this processor can't run {place.variant}")
    expected = results()
    with remote(place, tmp_path) as there:
        monkeypatch.setattr(library, "load", lambda: there)
        found = results()
    for loop, arrays in found.items():
        for numbers, right in zip(arrays, expected[loop], strict=True):
            np.testing.assert_array_equal(numbers, right, err_msg=loop)
