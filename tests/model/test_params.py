"""The parameters: documented with the values they have, and each with a source."""

import re
from pathlib import Path

from numalab.kernel import table
from numalab.model.params import DEFAULTS, PARAMETERS
from tests.reference.oracle import DEFAULTS as ORACLE_DEFAULTS

PAGE = (Path(__file__).parents[2] / "docs" / "model.md").read_text()


def test_the_page_gives_every_parameter_with_its_default() -> None:
    section = PAGE.split("## 2. ")[1].split("## 3. ")[0]
    written = {name: int(value) for name, value in re.findall(r"`(\w+)` (\d+)", section)}
    assert written == DEFAULTS


def test_the_oracle_has_the_same_defaults() -> None:
    assert ORACLE_DEFAULTS == DEFAULTS


def test_every_parameter_says_where_it_comes_from() -> None:
    for name, parameter in PARAMETERS.items():
        assert parameter.unit, name
        assert parameter.what, name
        assert parameter.source, name


def test_the_page_mentions_every_switch() -> None:
    """Numbers by name, other switches in back quotes."""
    missing = [name for name in table().switches if not re.search(rf"\b{name}\b", PAGE)]
    assert missing == []
