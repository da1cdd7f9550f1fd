"""Run tests in a virtual environment with the packages of a group of `pyproject.toml`.

    python tests/oracles/environment.py GROUP [PYTEST ARGUMENT...]

The environment `.venv-GROUP` is kept between runs. It gets what `requirements-dev.lock` and
`requirements-GROUP.lock` pin, and the longpole that `make` built. What cannot be installed is
named, and the tests that need it are skipped with the reason.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main(group: str, *arguments: str) -> int:
    """Make the environment if its locks changed, and run pytest in it."""
    folder = ROOT / f".venv-{group}"
    locks = [ROOT / "requirements-dev.lock", ROOT / f"requirements-{group}.lock"]
    pinned = "".join(lock.read_text(encoding="utf-8") for lock in locks)
    stamp = folder / ".installed"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != pinned:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True, symlinks=True)
        if installs_all(folder, group, locks):
            stamp.write_text(pinned, encoding="utf-8")
    if not (folder / "bin/pytest").exists():
        print(f"skipped: no packages for {folder.name} can be installed here", flush=True)
        return 0
    link_longpole(folder)
    print(f"In {folder.name}:", flush=True)
    command = [folder / "bin/python", "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ(folder), check=False).returncode


def environ(folder: Path) -> dict[str, str]:
    """Return the variables of a process in an environment: its programs come first."""
    return {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def installs_all(folder: Path, group: str, locks: list[Path]) -> bool:
    """Install a group at the pinned versions, or as much of it as there is; true if all."""
    if pip(folder, *(word for lock in locks for word in ("--requirement", str(lock)))):
        return True
    constraints = [word for lock in locks for word in ("--constraint", str(lock))]
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = groups["dependency-groups"]
    failed = [each for each in wanted["dev"] + wanted[group] if not pip(folder, each, *constraints)]
    print(f"{folder.name} lacks {', '.join(failed)}: see the messages of pip above", flush=True)
    return not failed


def pip(folder: Path, *words: str) -> bool:
    command = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--retries", "1", *words]
    return subprocess.run(command, check=False).returncode == 0


def link_longpole(folder: Path) -> None:
    """Offer this longpole with its built core, as an editable installation does."""
    built = importlib.metadata.distribution("longpole")
    [entry] = [each for each in built.entry_points if each.group == "console_scripts"]
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    about = f"longpole-{built.version}.dist-info"
    shutil.copytree(str(built.locate_file(about)), packages / about, dirs_exist_ok=True)
    (packages / "longpole.pth").write_text(f"{ROOT / 'python'}\n", encoding="utf-8")
    script = folder / "bin" / entry.name
    script.write_text(
        f"#!{folder / 'bin/python'}\n"
        f"import sys\nfrom {entry.module} import {entry.attr}\nsys.exit({entry.attr}())\n",
        encoding="utf-8",
    )
    script.chmod(0o755)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
