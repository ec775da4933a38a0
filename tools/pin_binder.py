"""Write binder/requirements.txt: the releases installed here of everything numalab[lab] leads to.

    python tools/pin_binder.py

Run it in an environment in which `make test` passes, with the Python that binder/runtime.txt names. numalab itself is
not in the list: binder/postBuild installs it from the checkout.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).resolve().parent.parent
PINS, RUNTIME = CHECKOUT / "binder" / "requirements.txt", CHECKOUT / "binder" / "runtime.txt"
#: Of pyproject.toml: what Binder has beside the dependencies.
EXTRA = "lab"


def main() -> int:
    """Write the pins, unless this is another Python."""
    here = "python-{}.{}".format(*sys.version_info[:2])
    wanted = RUNTIME.read_text(encoding="utf-8").strip()
    if here != wanted:
        print(f"error: binder/runtime.txt says {wanted}, this is {here}: pin with that Python", file=sys.stderr)
        return 1
    lines = [f"{name}=={version}" for name, version in closure(direct()).items()]
    head = "# What numalab[lab] leads to, as tested. Written by tools/pin_binder.py; do not edit."
    PINS.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    print(f"{PINS}: {len(lines)} packages")
    return 0


def direct() -> list[str]:
    """Return what pyproject.toml asks for."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *project["optional-dependencies"][EXTRA]]


def closure(requirements: list[str]) -> dict[str, str]:
    """Return the installed release of every package that requirements lead to, by name.

    Parameters
    ----------
    requirements : list of str
        Extras and markers are followed, as pip does.
    """
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(text, "") for text in requirements]
    while todo:
        text, extra = todo.pop()
        one = Requirement(text)
        if one.marker and not one.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(one.name)
        for wanted in ("", *one.extras):
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                installed = distribution(name)
                found[name] = installed.version
                todo += [(line, wanted) for line in installed.requires or ()]
    return dict(sorted(found.items()))


if __name__ == "__main__":
    sys.exit(main())
