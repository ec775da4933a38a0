"""Widgets for the notebooks: explore a model, predict its answer, practise.

``Explorer``
    Controls, a figure and a sentence; the model runs live behind them.
``Setup``, ``Computation``
    What an explorer runs: a simulation, or any other computation.
``slider``, ``steps``, ``choice``, ``switch``
    Controls.
``Predict``, ``Exercise``, ``Problem``
    A guess before the run; problems whose numbers are seeds.
``Diagnosed``, ``Compared``
    Places for the output of tools, read and judged at once.
``Printed``, ``Table``, ``ClaimsTable``
    Text and tables that are wider than a notebook.

Figures and words reach the page as HTML widgets (an Image widget has no text alternative): they are state, so they
survive in saved notebooks, under nbclient and in the threads that today's JupyterLab runs callbacks on. Nothing here
touches pyplot.
Every widget can be driven from code: ``explorer.set(t=7)``, ``guess.give(12)``, ``exercise.check(3)``.
"""

from numalab.widgets.controls import Knob, choice, slider, steps, switch
from numalab.widgets.diagnosed import Compared, Diagnosed
from numalab.widgets.explorer import Explorer
from numalab.widgets.jobs import Computation, Setup
from numalab.widgets.printed import ClaimsTable, Printed, Table
from numalab.widgets.questions import Exercise, Predict, Problem

__all__ = [
    "ClaimsTable",
    "Compared",
    "Computation",
    "Diagnosed",
    "Exercise",
    "Explorer",
    "Knob",
    "Predict",
    "Printed",
    "Problem",
    "Setup",
    "Table",
    "choice",
    "slider",
    "steps",
    "switch",
]
