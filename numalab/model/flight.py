"""Pages under migration for longer than a step, and the tasks that sleep until they arrive (docs/model.md 4.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numalab.layout import Bools, Ints
from numalab.model import draws
from numalab.model.state import State

#: Farther than any walk goes.
BEYOND = 1 << 60


@dataclass
class Held:
    """The blocks in flight, in order of run and moving task.

    Attributes
    ----------
    r, t, b, source : (K,) run, moving task, memory block, node it leaves
    takes, done : (K,) time of the migration, and how much of it is over, ns
    """

    r: Ints
    t: Ints
    b: Ints
    source: Ints
    takes: Ints
    done: Ints

    def leaves(self, r: Ints, t: Ints, b: Ints) -> Ints:
        """Return the node that blocks still are on for tasks that do not move them, -1 if they are not in flight."""
        others = (self.r == r[:, None]) & (self.b == b[:, None]) & (self.t != t[:, None])
        return np.where(others.any(axis=1), self.source[others.argmax(axis=1)], -1)

    def unmapped(self, state: State, i: Ints, t: Ints) -> Bools:
        """Say whether blocks ``i`` are gone from tasks' page tables: processes lose them one after the other."""
        one, fix = state.layout, state.fix
        region = fix.block_region[self.b[i]]
        place = fix.mapping_place(region, one.task_process[t])
        return place * self.takes[i] < fix.mappers[region] * self.done[i]

    def holds(self, state: State, r: Ints, t: Ints, b: Ints) -> Bools:
        """Say which blocks are in flight and gone, for tasks that move none themselves."""
        i, j = np.nonzero((self.r == r[:, None]) & (self.b == b[:, None]))
        held = np.zeros(len(r), np.bool_)
        held[i[self.unmapped(state, j, t[i])]] = True
        return held & (state.moving[r, t] < 0)


def held(state: State) -> Held:
    """Return the blocks whose migration outlasts the step."""
    if not state.in_flight:
        nothing = np.zeros(0, np.int64)
        return Held(nothing, nothing, nothing, nothing, nothing, nothing)
    r, t = state.flying
    takes = state.moving_ns[r, t]
    return Held(r, t, state.moving[r, t], state.moving_from[r, t], takes, takes - state.owed(r, t))


def sleep(state: State, r: Ints, t: Ints, b: Ints) -> None:
    """Put tasks to sleep for the first block each of them met."""
    awake = (state.waits_for[r, t] < 0) & (state.moving[r, t] < 0)
    r, t, b = r[awake], t[awake], b[awake]
    _, first = np.unique(r * state.layout.tasks + t, return_index=True)
    r, t, b = r[first], t[first], b[first]
    state.waits_for[r, t] = b
    state.queue_changed[r] = True
    np.add.at(state.counters["migration_waits"], r, 1)


def distance(state: State, held: Held, r: Ints, a: Ints) -> tuple[Ints, Ints]:
    """Return how far ahead of sequential accesses the nearest block in flight is, and which it is: (K,) each."""
    one, fix = state.layout, state.fix
    far, which = np.full(len(r), BEYOND), np.full(len(r), -1)
    region = one.vma_region[one.access_vma[a]]
    still = state.moving[r, one.access_task[a]] < 0
    i, j = np.nonzero((held.r == r[:, None]) & (fix.block_region[held.b] == region[:, None]) & still[:, None])
    gone = held.unmapped(state, j, one.access_task[a[i]])
    i, j = i[gone], j[gone]
    ahead = (held.b[j] - one.region_first[region[i]] - state.pos[r[i], a[i]]) % one.region_blocks[region[i]]
    for row, d, b in zip(i, ahead, held.b[j], strict=True):
        if d < far[row]:
            far[row], which[row] = d, b
    return far, which


def meet_at_random(state: State, held: Held, weight: Ints) -> None:
    """Let random accesses meet blocks in flight, by how many pages they visit.

    Parameters
    ----------
    weight : (R, A) page visits of the step, in millionths
    """
    one, fix = state.layout, state.fix
    accesses = fix.random_access
    region = one.vma_region[one.access_vma[accesses]]
    h, j = np.nonzero((fix.block_region[held.b][:, None] == region) & (weight[held.r][:, accesses] > 0))
    a, r, b = accesses[j], held.r[h], held.b[h]
    wait = draws.exponential(
        draws.draw_keyed(state.key[draws.MEET][r], b * len(one.access_task) + a, state.step_index[r])
    )
    met = wait * fix.region_pages[region[j]] <= weight[r, a] * one.region_block_pages[region[j]]
    met &= held.unmapped(state, h, one.access_task[a])
    a, r, b, mover = a[met], r[met], b[met], held.t[h[met]]
    order = np.lexsort((mover, a, r))
    sleep(state, r[order], one.access_task[a[order]], b[order])
