"""Compiles the loops in src/truerank/kernels when the package is built, including editable installs.

The compiler is the one in CC, or else `zig cc`, which comes as the Python package ziglang and needs nothing else.
By default the library is for this computer; with zig, TRUERANK_TARGET selects another of `TARGETS`. For x86-64
there are two libraries, and on Linux a third for AVX-512 with VNNI, unless TRUERANK_VARIANTS is "here": then there
is only the one that this processor chooses, which takes half the time or less.
`truerank.kernels.library` loads the best one that the processor can run. If zopfli is installed, it compresses wheels.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

try:
    from zopfli import zlib as zopfli
except ImportError:
    zopfli = None

ZIG = "ziglang==0.17.0"
SOURCES = Path("src/truerank/kernels")
# sums are rounded exactly as written, and only the functions that kernels.h exports are visible
FLAGS = (
    "-std=c11 -O3 -g0 -fPIC -ffp-contract=off -fno-math-errno -fvisibility=hidden -Wall -Wextra -Wno-unused-function"
)
MORE_FLAGS = {
    "x86-64": ["-Os"],  # most of its time is spent in calls of fma, so all that counts is the size of the wheel
    "x86-64-v4-vnni": ["-mavx512vnni", "-mprefer-vector-width=512"],
}
SMALL = "-fno-unroll-loops -fno-unwind-tables -fno-asynchronous-unwind-tables"  # a third less code, not slower
# what Linux calls the instructions of a variant, the best variant first
INSTRUCTIONS = {
    "x86-64-v4-vnni": "avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "x86-64": "",
}
LINUX = "-nostdlib -lc -Wl,-z,defs"  # without the support library of zig: nothing needs it, and it is compiled first


class Target(NamedTuple):
    """A kind of computer: its name for zig, the platform tag of its wheels, and the suffix of its shared libraries."""

    zig: str
    tag: str
    suffix: str

    @property
    def variants(self) -> list[str]:
        """The names of its libraries: macOS hides the registers of level 4, and on Windows each library is larger."""
        if self.zig.startswith("aarch64"):
            return ["arm64"]
        return ["x86-64", "x86-64-v3"] + ["x86-64-v4-vnni"] * ("linux" in self.zig)


TARGETS = {
    "linux-x86_64": Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64.manylinux2014_x86_64", ".so"),
    "linux-aarch64": Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64.manylinux2014_aarch64", ".so"),
    "linux-musl-x86_64": Target("x86_64-linux-musl", "musllinux_1_2_x86_64", ".so"),
    "linux-musl-aarch64": Target("aarch64-linux-musl", "musllinux_1_2_aarch64", ".so"),
    "macos-arm64": Target("aarch64-macos.11.0", "macosx_11_0_arm64", ".dylib"),
    "macos-x86_64": Target("x86_64-macos.11.0", "macosx_11_0_x86_64", ".dylib"),
    "windows-amd64": Target("x86_64-windows-gnu", "win_amd64", ".dll"),
}


def this_computer() -> str:
    """Return the target name of this computer, which need not be one of `TARGETS`."""
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    libc = "" if system != "linux" or platform.libc_ver()[0] == "glibc" else "-musl"
    return f"{system}{libc}-{platform.machine().lower() if system == 'windows' else platform.machine()}"


class Compiler(NamedTuple):
    """A command that takes the flags of GCC; zig spells processors differently."""

    command: list[str]
    zig: bool = False

    def build(self, variants: list[str], folder: Path, suffix: str) -> list[Path]:
        """Compile all variants, and return the paths of the libraries."""
        folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool, TemporaryDirectory() as scratch:
            sources = sorted(SOURCES.glob("*.c"))
            objects = {name: [pool.submit(self._compile, name, each, scratch) for each in sources] for name in variants}
            return [self._link(objects[name], folder / f"kernels-{name}{suffix}", scratch) for name in variants]

    def _compile(self, variant: str, source: Path, folder: str) -> str:
        target = str(Path(folder, f"{source.stem}-{variant}.o"))
        # every processor must be able to run what tells which one it is
        level = "x86-64" if variant.startswith("x86") and source.stem == "processor" else variant
        self._run(*shlex.split(f"{FLAGS} {SMALL}"), *self._flags(level), "-c", str(source), "-o", target)
        return target

    def _link(self, objects: list[Future[str]], path: Path, folder: str) -> Path:
        library = Path(folder, path.name)
        own = LINUX.split() if self.zig and path.suffix == ".so" else []
        self._run("-shared", "-O3", "-s", *(each.result() for each in objects), *own, "-lm", "-o", str(library))
        replacement = shutil.copy(library, path.with_name(path.name + ".new"))
        Path(replacement).replace(path)  # processes that have loaded the old library keep it
        return path

    def _flags(self, variant: str) -> list[str]:
        if not variant.startswith("x86"):
            return []
        level = variant.removesuffix("-vnni")
        processor = "-mcpu=" + level.replace("-", "_") if self.zig else "-march=" + level
        return [processor, *MORE_FLAGS.get(variant, [])]

    def _run(self, *arguments: str) -> None:
        subprocess.run([*self.command, *arguments], check=True)


def zig(target: Target) -> Compiler:
    return Compiler([sys.executable, "-m", "ziglang", "cc", "-target", target.zig], zig=True)


def compile_here(command: str) -> list[Path]:
    """Compile for this computer; one that is not among the targets gets a single variant."""
    target, suffix = TARGETS.get(this_computer()), {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    return Compiler(shlex.split(command)).build(target.variants if target else ["native"], SOURCES, suffix)


def libraries() -> list[Path]:
    return [path for path in sorted(SOURCES.glob("kernels-*")) if path.suffix in (".so", ".dylib", ".dll")]


def wanted(target: Target) -> list[str]:
    """Return the variants to compile for this computer."""
    if os.environ.get("TRUERANK_VARIANTS") != "here" or "x86_64-linux" not in target.zig:
        return target.variants
    there = set(Path("/proc/cpuinfo").read_text().split())
    return [next(name for name, needed in INSTRUCTIONS.items() if there.issuperset(needed.split()))]


def is_current(library: Path) -> bool:
    """Whether a library is newer than all its sources."""
    changed = max(path.stat().st_mtime for path in [Path(__file__), *SOURCES.glob("*.[chi]*")])
    return library.stat().st_mtime > changed


def missing() -> list[str]:
    """Return the variants that this computer needs and that the source folder lacks."""
    there = {path.stem.removeprefix("kernels-") for path in libraries() if is_current(path)}
    target = TARGETS.get(this_computer())
    return [name for name in (wanted(target) if target else ["native"]) if name not in there]


def build() -> tuple[list[Path], str]:
    """Return the paths of the libraries, compiled unless they are current, and the platform tag."""
    compiler, name = os.environ.get("CC"), os.environ.get("TRUERANK_TARGET", this_computer())
    if compiler and name == this_computer():
        return compile_here(compiler), sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if name not in TARGETS:
        raise SystemExit(f"zig can't compile truerank for {name}; set CC to a C compiler.")
    target = TARGETS[name]
    if name != this_computer():
        return zig(target).build(target.variants, Path("build", name), target.suffix), target.tag
    zig(target).build(missing(), SOURCES, target.suffix)
    for path in libraries():
        if not is_current(path):
            path.unlink()  # of a variant that is left out, and perhaps without the functions of today
    return libraries(), target.tag


def compress_again(wheel: Path) -> None:
    """Compress a wheel by zopfli, which takes some seconds and saves 4 %; everything that reads wheels can read it."""
    smaller = wheel.with_suffix(".new")
    by_zopfli = SimpleNamespace(
        compress=lambda data: zopfli.compress(data, numiterations=5)[2:-4],  # without the frame of zlib
        flush=lambda: b"",
    )
    with zipfile.ZipFile(wheel) as files, zipfile.ZipFile(smaller, "w") as result:
        for each in files.infolist():
            content = files.read(each)
            with result.open(each, "w") as file:
                file._compressor = by_zopfli  # type: ignore[attr-defined] # there is no public way
                file.write(content)
    smaller.replace(wheel)


class LibraryHook(BuildHookInterface):  # type: ignore[misc] # hatchling is installed only while building
    """Adds the libraries to the wheel, which is then for one platform and any Python 3."""

    def dependencies(self) -> list[str]:
        """Return the compiler, if it is needed."""
        os.chdir(self.root)
        is_ready = os.environ.get("CC") or not missing()
        return [] if is_ready and "TRUERANK_TARGET" not in os.environ else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is built."""
        os.chdir(self.root)
        paths, tag = build()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"
        build_data["force_include"] |= {str(path): f"truerank/kernels/{path.name}" for path in paths}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Make a wheel smaller, but not one that an editable installation unpacks at once."""
        if zopfli and version == "standard":
            compress_again(Path(artifact_path))
