"""The explorer: controls, a figure, a sentence; the model runs live behind them."""

from __future__ import annotations

import atexit
import html
import textwrap
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Event, Lock, RLock, Thread
from typing import Any

import ipywidgets as w
from matplotlib.figure import Figure

from numalab.plots import Picture, style
from numalab.widgets.controls import Knob
from numalab.widgets.jobs import DONE, Job, Progress
from numalab.widgets.times import reached, until_time

Values = Mapping[str, Any]
Results = Mapping[str, Any]

#: matplotlib's caches of fonts and text are shared by all threads: one figure at a time.
_DRAWING = RLock()
#: One explorer computes at a time: two would only make both slow.
_COMPUTING = Lock()
#: Wall-clock seconds of simulation between looks at whether the reader has moved on, and between pictures. The first
#: picture comes after one step.
_SLICE_S, _REDRAW_S = 0.01, 0.8
#: Steps of the time slider.
_FRAMES = 40
#: Characters of a line of output that a notebook has room for at 1280 pixels.
_LINE = 88


#: Set when Python ends: a thread that is then still computing would bring it down.
_ENDING = Event()


def _end() -> None:
    _ENDING.set()
    _COMPUTING.acquire(timeout=10)


atexit.register(_end)


class Stale(Exception):
    """What is being computed is no longer wanted."""


@dataclass(frozen=True)
class _Request:
    """What is to be shown: a generation number, the values, the seeds, and until when (None: to the end)."""

    generation: int
    values: Values
    seeds: Sequence[int]


class Explorer:
    """Controls with a figure that follows them.

    Each change of a control runs the model anew in a thread of its own; what an earlier change started is dropped. The
    figure shows what is simulated so far and goes on.

    Parameters
    ----------
    title : str
    knobs : sequence of Knob
    sides : callable
        From the controls' values to what is run: name of a side -> job. Two sides are drawn beside each other.
    draw : callable
        From the results (name of a side -> dataset so far) and the values to a :class:`numalab.plots.Picture` or a
        ``matplotlib.figure.Figure``.
    tell : callable, optional
        From the same to a sentence that says what the figure shows. It is also the picture's text alternative.
        Pictures have one of their own; figures need this.
    presets : mapping, optional
        Label of a button -> values it sets; the other controls go back to where they started.
    band : int
        Runs of the band over seeds; 0: there is no band, as one run alone can be shown.
    seed : int
        Problem number at the start.
    seeded : bool
        Whether seeds mean anything here; without them there is no problem number and no band.

    Examples
    --------
    >>> from numalab import plots
    >>> from numalab.widgets import Explorer, Setup, slider
    >>> def sides(values):
    ...     load = {"p": 4, "t": values["t"], "P": 64}
    ...     return {k: Setup("guest-4x2", "perf_bench_numa", k, 10, load) for k in ("3.16", "3.17")}
    >>> def draw(runs, values):
    ...     return plots.nodes(runs, seconds=10)
    >>> explorer = Explorer("Threads", [slider("t", "threads", 1, 8, 2)], sides, draw)
    >>> explorer.set(t=1)
    >>> explorer.sentence.startswith("3.16: after 10.0 s")
    True
    """

    def __init__(
        self,
        title: str,
        knobs: Sequence[Knob],
        sides: Callable[[Values], Mapping[str, Job]],
        draw: Callable[[Results, Values], Picture | Figure],
        tell: Callable[[Results, Values], str] | None = None,
        *,
        presets: Mapping[str, Values] | None = None,
        band: int = 8,
        seed: int = 0,
        seeded: bool = True,
    ) -> None:
        self.title = title
        self._knobs = {knob.name: knob for knob in knobs}
        self._presets = dict(presets or {})
        for label, values in self._presets.items():
            self._check(values, f"preset {label!r}")
        self._sides, self._draw, self._tell = sides, draw, tell
        self._band, self._first_seed, self._seeded = band, seed, seeded
        self._state = Condition()
        self._generation, self._finished = 0, -1
        self._held = False
        self._error: BaseException | None = None
        self._shown: dict[str, Any] = {}
        self._seconds: float | None = None
        self._sentence, self._png = "", b""
        self._make_view()

    # ------------------------------------------------------------------ what a notebook calls
    @property
    def values(self) -> dict[str, Any]:
        """The controls' values, by name."""
        return {name: control.value for name, control in self.controls.items()}

    @property
    def seeds(self) -> list[int]:
        """The seeds that are run: the problem number, and with the band those after it."""
        first = int(self.seed.value)
        return list(range(first, first + (self._band if self.band.value else 1)))

    @property
    def results(self) -> dict[str, Any]:
        """What is shown: name of a side -> dataset (as far as it has got)."""
        return dict(self._shown)

    @property
    def sentence(self) -> str:
        """What the figure shows, in words."""
        return self._sentence

    @property
    def facts(self) -> str:
        """What was computed: machine, simulated time, step, seeds."""
        return str(self._facts_text)

    @property
    def told(self) -> str:
        """Sentence and facts, in lines that fit a notebook."""
        return "\n".join(textwrap.fill(part, _LINE) for part in (self.sentence, self.facts))

    @property
    def call(self) -> str:
        """The Python that computes what is shown."""
        return str(self.code.value)

    @property
    def png(self) -> bytes:
        """The picture."""
        return self._png

    def set(self, *, wait: bool = True, **values: Any) -> None:
        """Set controls, as a hand on them would, and wait for the result.

        Parameters
        ----------
        wait : bool
        **values
            Of controls; also ``seed`` (problem number), ``band`` (bool) and ``time`` (s, to look at an earlier time).

        Raises
        ------
        ValueError
            An unknown name, or a value the control does not have.
        """
        own = {"seed": self.seed, "band": self.band, "time": self.time}
        self._check({name: value for name, value in values.items() if name not in own}, "set")
        with self._hold():
            for name, value in values.items():
                if name != "time":
                    (own.get(name) or self.controls[name]).value = value
        if "time" in values:
            self.wait()
            self.time.value = values["time"]
        if wait:
            self.wait()

    def preset(self, label: str) -> None:
        """Press a preset's button, and wait.

        Raises
        ------
        ValueError
            No such preset.
        """
        if label not in self._presets:
            raise ValueError(f"preset: expected one of {', '.join(self._presets)}, got {label!r}")
        self._press_preset(label)
        self.wait()

    def reset(self) -> None:
        """Set every control back to where it started."""
        with self._hold():
            for name, knob in self._knobs.items():
                self.controls[name].value = knob.value
            self.seed.value, self.band.value = self._first_seed, False

    def wait(self, timeout_s: float = 300.0) -> None:
        """Wait until what the controls ask for is computed and shown to its end.

        Raises
        ------
        TimeoutError
        Exception
            What went wrong while computing or drawing.
        """
        if not self._generation:
            self._changed()
        with self._state:
            if not self._state.wait_for(lambda: self._finished == self._generation, timeout_s):
                raise TimeoutError(f"explorer {self.title!r}: not finished within {timeout_s:g} s")
        if self._error is not None:
            raise self._error

    def __repr__(self) -> str:
        return f"Explorer: {self.title} ({', '.join(self._knobs)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Show the widget; computing begins when it is first looked at."""
        if not self._generation:
            self._changed()
        bundle = self.view._repr_mimebundle_(**kwargs)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        data["text/plain"] = repr(self)
        return data

    # ------------------------------------------------------------------ the view
    def _make_view(self) -> None:
        self.controls = {name: knob.build() for name, knob in self._knobs.items()}
        self.seed = w.BoundedIntText(
            value=self._first_seed, min=0, max=2**31, description="seed (problem number)",
            style={"description_width": "initial"}, layout=w.Layout(width="16em"),
        )  # fmt: skip
        self.another = w.Button(description="next seed", tooltip="Run the same with other random draws")
        self.band = w.ToggleButton(
            value=False, description=f"band over {self._band} seeds", icon="area-chart",
            tooltip="Run further seeds and draw the 90 % band between them", layout=w.Layout(width="auto"),
        )  # fmt: skip
        self.again = w.Button(description="reset", icon="undo", tooltip="Set every control back")
        self.play = w.Play(
            value=_FRAMES, min=0, max=_FRAMES, interval=400, description="play over time", show_repeat=False
        )
        self.time = w.FloatSlider(
            value=0, min=0, max=1, step=0.01, description="show until [s]", continuous_update=False,
            readout_format=".1f", style={"description_width": "initial"}, layout=w.Layout(width="24em"),
        )  # fmt: skip
        self.image = w.HTML(layout=w.Layout(width="100%"))
        self.words = w.HTML()
        self.footer = w.HTML()
        self.code = w.Textarea(
            rows=7, description="Python call", layout=w.Layout(width="98%"), style={"description_width": "initial"}
        )
        self._facts_text = ""
        self.preset_buttons = {label: w.Button(description=label, tooltip=f"Set {label}") for label in self._presets}
        for label, button in self.preset_buttons.items():
            button.layout.width = "auto"
            button.on_click(lambda _, label=label: self._press_preset(label))
        self.timeline = w.HBox([self.play, self.time])
        seeding = [self.seed, self.another, *([self.band] if self._band else [])] if self._seeded else []
        rows = [
            w.HTML(f"<h4 style='margin:0'>{html.escape(self.title)}</h4>"),
            *([_row([w.Label("presets:"), *self.preset_buttons.values()])] if self._presets else []),
            _row(list(self.controls.values())),
            _row([*seeding, self.again]),
            self.image,
            self.words,
            self.timeline,
            self.footer,
            w.Accordion([self.code], titles=("Copy the Python call",)),
        ]
        self.view = w.VBox(rows, layout=w.Layout(border="1px solid #888888", padding="8px"))
        for control in (*self.controls.values(), self.seed, self.band):
            control.observe(lambda _: self._changed(), names="value")
        self.another.on_click(lambda _: setattr(self.seed, "value", self.seed.value + 1))
        self.again.on_click(lambda _: self.reset())
        self.play.observe(self._play_on, names="value")
        self.time.observe(lambda _: self._time_moved(), names="value")

    def _press_preset(self, label: str) -> None:
        with self._hold():
            for name, knob in self._knobs.items():
                self.controls[name].value = self._presets[label].get(name, knob.value)

    def _check(self, values: Values, where: str) -> None:
        for name in values:
            if name not in self._knobs:
                raise ValueError(f"{where}: no control {name!r}; the controls are {', '.join(self._knobs)}")

    @contextmanager
    def _hold(self) -> Iterator[None]:
        """Take several changes as one."""
        self._held = True
        before = (self.values, self.seeds)
        try:
            yield
        finally:
            self._held = False
        if not self._generation or before != (self.values, self.seeds):
            self._changed()

    # ------------------------------------------------------------------ running
    def _changed(self) -> None:
        """Ask for what the controls say now; whatever was being computed becomes stale."""
        if self._held:
            return
        with self._state:
            self._generation += 1
            self._error = None
            request = _Request(self._generation, self.values, self.seeds)
        Thread(target=self._work, args=(request,), daemon=True, name=f"explorer {self.title}").start()

    def _work(self, request: _Request) -> None:
        try:
            with _COMPUTING:
                self._compute(request)
        except Stale:
            return
        except Exception as error:
            # a thread's traceback reaches nobody; the reader sees the message, wait() raises it
            if request.generation == self._generation:
                self._error = error
                self._say(f"This cannot be shown: {error}", done=True)
        with self._state:
            if request.generation == self._generation:
                self._finished = request.generation
                self._state.notify_all()

    def _compute(self, request: _Request) -> None:
        self._check_wanted(request)
        jobs = dict(self._sides(request.values))
        parts = {name: job.parts(request.seeds) for name, job in jobs.items()}
        self._describe(jobs, request)
        done: dict[str, list[Any]] = {name: [] for name in jobs}
        stages = max(map(len, parts.values()))
        for stage in range(stages):
            todo = {name: part[stage] for name, part in parts.items() if stage < len(part)}
            last = stage == stages - 1
            for name, result in self._run(jobs, todo, request, shows=stage == 0).items():
                done[name].append(result)
            results = {name: jobs[name].join(each) for name, each in done.items()}
            count = max(sum(map(len, part[: stage + 1])) for part in parts.values())
            self._show(results, request, "" if last else f"{count} of {len(request.seeds)} seeds", done=last)

    def _run(
        self, jobs: Mapping[str, Job], todo: Mapping[str, list[int]], request: _Request, *, shows: bool
    ) -> dict[str, Any]:
        """Run some seeds of every side to the end, side by side; with ``shows``, draw on the way."""
        calls = {name: jobs[name].call(seeds) for name, seeds in todo.items()}
        results = {name: DONE.get(call) for name, call in calls.items()}
        going: dict[str, Progress] = {name: jobs[name].start(todo[name]) for name, r in results.items() if r is None}
        slice_s, next_draw = 0.0, 0.0
        while any(not one.done for one in going.values()):
            for one in going.values():
                if not one.done:
                    one.advance(slice_s)
                    self._check_wanted(request)
            slice_s = _SLICE_S
            if shows and time.monotonic() >= next_draw and any(not one.done for one in going.values()):
                begun = time.monotonic()
                so_far = {name: results[name] if name not in going else going[name].dataset() for name in todo}
                self._show(so_far, request, "going on", done=False)
                # no more than a third of the time goes into pictures
                next_draw = time.monotonic() + max(_REDRAW_S, 2 * (time.monotonic() - begun))
        for name, one in going.items():
            results[name] = one.dataset()
            DONE.put(calls[name], results[name])
        return results

    def _check_wanted(self, request: _Request) -> None:
        if request.generation != self._generation or _ENDING.is_set():
            raise Stale

    # ------------------------------------------------------------------ showing
    def _describe(self, jobs: Mapping[str, Job], request: _Request) -> None:
        """Write down what is run: facts and call; fit the time slider."""
        facts = "; ".join(dict.fromkeys(job.facts() for job in jobs.values()))
        seeds = request.seeds
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        self._facts_text = f"{facts}; {which}." if self._seeded else f"{facts}."
        self._footer("")
        calls = dict.fromkeys(job.call(seeds) for job in jobs.values())
        self.code.value = "\n\n".join(calls)
        lengths = [job.seconds for job in jobs.values() if job.seconds is not None]
        self._seconds = max(lengths) if lengths else None
        self.timeline.layout.display = "flex" if lengths else "none"
        if self._seconds is not None:
            self._held_time = True
            self.time.max = self._seconds
            self.time.value = self._seconds
            self.play.value = _FRAMES
            self._held_time = False

    _held_time = False

    def _show(self, results: Results, request: _Request, progress: str, *, done: bool) -> None:
        figure, png, words = self._picture(results, request.values, lambda: self._check_wanted(request))
        with self._state:
            self._check_wanted(request)
            self._shown = dict(results)
        self._picture_and_words(png, words, done=done)
        if progress == "going on":
            so_far = min((reached(one) for one in results.values()), default=0.0)
            progress = f"simulated so far: {so_far:.1f} s" if self._seconds else "computing"
        self._footer(progress)
        with _DRAWING:
            style.spare(figure)

    def _picture(
        self, results: Results, values: Values, check_wanted: Callable[[], None] = lambda: None
    ) -> tuple[Figure, bytes, str]:
        """Draw, and tell in words; a picture that is no longer wanted is left half drawn."""
        with _DRAWING:
            drawn = self._draw(results, values)
            figure = drawn.figure if isinstance(drawn, Picture) else drawn
            check_wanted()
            if self._tell is not None:
                return figure, style.png(figure), self._tell(results, values)
            if isinstance(drawn, Picture):
                return figure, style.png(figure), drawn.alt
            raise TypeError(
                f"explorer {self.title!r}: draw returns a bare figure; give tell=, which says what it shows"
            )

    def _picture_and_words(self, png: bytes, words: str, *, done: bool) -> None:
        """Show a picture with its text alternative, which the Image widget cannot carry."""
        self._png = png
        width, height = (int.from_bytes(png[i : i + 4], "big") for i in (16, 20))
        # its size reserves the room and it is decoded at once, so nothing flickers
        self.image.value = (
            f'<img alt="{html.escape(words)}" src="data:image/png;base64,{b64encode(png).decode()}" '
            f'width="{width}" height="{height}" decoding="sync" style="max-width:100%; height:auto">'
        )
        self._say(words, done=done)

    def _say(self, words: str, *, done: bool) -> None:
        """Put the sentence under the picture."""
        self._sentence = words
        # screen readers are told the result, not every step towards it
        live = "polite" if done else "off"
        self.words.value = f"<p role='status' aria-live='{live}' style='line-height:1.4'>{html.escape(words)}</p>"

    def _footer(self, progress: str) -> None:
        extra = f" <em>{html.escape(progress)} …</em>" if progress else ""
        self.footer.value = f"<small>{html.escape(self._facts_text)}{extra}</small>"

    # ------------------------------------------------------------------ time
    def _play_on(self, change: Any) -> None:
        if self._seconds is not None and not self._held_time:
            self.time.value = self._seconds * change["new"] / _FRAMES

    def _time_moved(self) -> None:
        """Show an earlier time of what is there; nothing is computed."""
        if self._held_time or not self._shown or self._finished != self._generation:
            return
        generation, until = self._generation, float(self.time.value)
        cut = {name: until_time(one, until) for name, one in self._shown.items()}
        _, png, words = self._picture(cut, self.values)
        if generation == self._generation and until == self.time.value:
            self._picture_and_words(png, words, done=True)


def _row(children: Sequence[Any]) -> Any:
    return w.HBox(children, layout=w.Layout(flex_flow="row wrap", align_items="center"))
