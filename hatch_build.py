"""Compiles the loops in src/truerank/compiled when the package is built, editable installs included.

The compiler is `zig cc`, which comes as the Python package ziglang and needs nothing else, or the one in CC.
By default the library is for this computer; with zig, TRUERANK_TARGET names another of `TARGETS`. For x86-64
there are three variants, of which `truerank.compiled.library` loads the best that the processor runs.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ZIG = "ziglang==0.17.0"
SOURCES = Path("src/truerank/compiled")
# a sum or product is never rounded otherwise than written, and only what kernels.h exports is visible
FLAGS = "-std=c11 -O3 -g0 -fPIC -ffp-contract=off -fvisibility=hidden -Wall -Wextra -Wno-unused-function -shared"


class Target(NamedTuple):
    """A kind of computer: how zig calls it, the platform tag of its wheels, and how a shared library is called."""

    zig: str
    tag: str
    suffix: str

    @property
    def variants(self) -> list[str]:
        """The names of its libraries."""
        return ["arm64"] if self.zig.startswith("aarch64") else ["x86-64", "x86-64-v3", "x86-64-v4"]


TARGETS = {
    "linux-x86_64": Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64.manylinux2014_x86_64", ".so"),
    "linux-aarch64": Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64.manylinux2014_aarch64", ".so"),
    "macos-arm64": Target("aarch64-macos.11.0", "macosx_11_0_arm64", ".dylib"),
    "macos-x86_64": Target("x86_64-macos.11.0", "macosx_11_0_x86_64", ".dylib"),
    "windows-amd64": Target("x86_64-windows-gnu", "win_amd64", ".dll"),
}


def this_computer() -> str:
    """Return the name of this computer's kind, which need not be one of `TARGETS`."""
    system = {"darwin": "macos", "win32": "windows"}.get(sys.platform, sys.platform)
    libc = "" if system != "linux" or platform.libc_ver()[0] == "glibc" else "-other-libc"
    return f"{system}{libc}-{platform.machine().lower() if system == 'windows' else platform.machine()}"


def variant_flags(variant: str, *, zig: bool) -> list[str]:
    """Return the flags that choose a variant's instructions."""
    if not variant.startswith("x86"):
        return []
    level = ["-mcpu=" + variant.replace("-", "_")] if zig else ["-march=" + variant]
    return [*level, "-mprefer-vector-width=512"] if variant.endswith("v4") else level


def compile_with_zig(target: Target, folder: Path) -> list[Path]:
    """Compile all variants for a target, and return their paths."""
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target.zig]
    return [
        run_compiler([*command, *variant_flags(variant, zig=True)], folder / f"kernels-{variant}{target.suffix}")
        for variant in target.variants
    ]


def compile_with(compiler: str, folder: Path) -> list[Path]:
    """Compile for this computer by a compiler that takes the flags of GCC; unknown ones have one variant."""
    known = TARGETS.get(this_computer())
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    return [
        run_compiler(
            [*shlex.split(compiler), *variant_flags(variant, zig=False)], folder / f"kernels-{variant}{suffix}"
        )
        for variant in (known.variants if known else ["native"])
    ]


def run_compiler(command: list[str], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted(map(str, SOURCES.glob("*.c")))
    subprocess.run([*command, *shlex.split(FLAGS), *sources, "-lm", "-o", str(path)], check=True)
    for leftover in (path.with_suffix(".pdb"), path.with_suffix(".lib")):  # of Windows, nobody needs them
        leftover.unlink(missing_ok=True)
    return path


def libraries() -> list[Path]:
    return [path for path in sorted(SOURCES.glob("kernels-*")) if path.suffix in (".so", ".dylib", ".dll")]


def is_current() -> bool:
    """Whether all libraries in the source folder are newer than everything they are made of."""
    changed = max(path.stat().st_mtime for path in [Path(__file__), *SOURCES.glob("*.[chi]*")])
    return bool(libraries()) and min(path.stat().st_mtime for path in libraries()) > changed


def build() -> tuple[list[Path], str]:
    """Return the paths of the libraries, made now unless they are current, and the platform tag."""
    compiler, name = os.environ.get("CC"), os.environ.get("TRUERANK_TARGET", this_computer())
    if compiler and name == this_computer():
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        return compile_with(compiler, SOURCES), tag
    if name not in TARGETS:
        raise SystemExit(f"truerank can't be compiled for {name} by zig; set CC to a C compiler.")
    if name != this_computer():
        return compile_with_zig(TARGETS[name], Path("build") / name), TARGETS[name].tag
    return libraries() if is_current() else compile_with_zig(TARGETS[name], SOURCES), TARGETS[name].tag


class LibraryHook(BuildHookInterface):  # type: ignore[misc] # hatchling is there only while building
    """Puts the libraries into the wheel, which is then for one platform and any Python 3."""

    def dependencies(self) -> list[str]:
        """Return the compiler, if it is needed."""
        os.chdir(self.root)
        is_ready = os.environ.get("CC") or is_current()
        return [] if is_ready and "TRUERANK_TARGET" not in os.environ else [ZIG]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is made."""
        os.chdir(self.root)
        paths, tag = build()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"
        build_data["force_include"] |= {str(path): f"truerank/compiled/{path.name}" for path in paths}
