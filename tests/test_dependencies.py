"""What comes with truerank: versions of which any that pip chooses work, licences, and one version of its own."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

FOLDER = Path(__file__).parents[1]
NEEDED = [
    Requirement(text) for text in tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["dependencies"]
]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def allows(package: str, version: str, python: str) -> bool:
    here = [each for each in NEEDED if each.marker is None or each.marker.evaluate({"python_version": python})]
    (only,) = (each for each in here if each.name == package)
    return version in only.specifier


@pytest.mark.parametrize("python", PYTHONS)
def test_pyarrow_26_needs_numpy_2(python: str) -> None:
    assert not (allows("numpy", "1.26.4", python) and allows("pyarrow", "26.0.1", python))


def test_rectools_wants_numpy_below_2_before_python_3_13() -> None:
    assert all(allows("numpy", "1.26.4", python) for python in ("3.11", "3.12"))


@pytest.mark.parametrize("python", PYTHONS)
def test_lenskit_wants_pyarrow_20_or_newer_and_cornac_numpy_2(python: str) -> None:
    assert allows("pyarrow", "25.0.1", python)
    assert allows("numpy", "2.4.6", python)


@pytest.mark.parametrize(
    "name", ["constraints.txt", "constraints-models.txt", "constraints-peers.txt", "constraints-spark.txt"]
)
def test_constraints_are_within_the_bounds(name: str) -> None:
    lines = (FOLDER / name).read_text().splitlines()
    pinned = {each.name: each for each in map(Requirement, lines) if each.marker is None or each.marker.evaluate()}
    for needed in NEEDED:
        if needed.name in pinned and (needed.marker is None or needed.marker.evaluate()):
            (version,) = pinned[needed.name].specifier
            assert version.version in needed.specifier


def test_the_recipe_of_conda_has_the_same_bounds() -> None:
    _, _, listed = (FOLDER / "recipe/meta.yaml").read_text().partition("  run:\n")
    lines = listed.partition("\n\n")[0].replace("    - ", "").splitlines()
    markers = {"": "", "# [py<313]": "; python_version < '3.13'", "# [py>=313]": "; python_version >= '3.13'"}
    found = [(text, markers[mark + selector]) for text, mark, selector in (line.partition("# ") for line in lines)]
    assert {Requirement(text + marker) for text, marker in found} == {*NEEDED, Requirement("python")}


PERMISSIVE = ("Apache", "BSD", "ISC", "MIT", "Zlib")


def needs(package: str) -> set[str]:
    """Return the packages that come with a package, without its extras."""
    found = {package}
    for text in metadata.requires(package) or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found |= needs(requirement.name)
    return found


def licence(package: str) -> str:
    about = metadata.metadata(package)
    classifiers = [each for each in about.get_all("Classifier") or [] if each.startswith("License ::")]
    named = about.get_all("License-Expression") or about.get_all("License") or [""]
    return " ".join([named[0].partition("\n")[0], *classifiers])  # some give the whole text


@pytest.mark.parametrize("package", sorted(needs("truerank") - {"truerank"}))
def test_what_comes_with_truerank_has_a_permissive_licence(package: str) -> None:
    stated = licence(package)
    assert "GPL" not in stated
    assert any(name in stated for name in PERMISSIVE)


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (FOLDER / "CITATION.cff").read_text()
    assert f'version = "{version}"' in (FOLDER / "recipe/meta.yaml").read_text()
    assert (FOLDER / "CHANGELOG.md").read_text().startswith(f"# Changelog\n\n## {version} ")
