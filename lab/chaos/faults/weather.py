"""The network is slow, or carries only one direction for a while, and tells nobody.

A process that gives up waiting connects again, over the same network. Meanwhile its old session
lives on in the server, with its locks; and what it had sent may arrive when nobody expects it.
"""

import random

from lab.chaos.faults.network import pick_proxy
from lab.chaos.faults.scene import Scene
from lab.chaos.weather import Way

DELAYS = (0.002, 0.02, 0.1)  # seconds; the longest of a piece of data


def slow_down(scene: Scene, dice: random.Random) -> str:
    """For some seconds each piece of data takes longer, to one server and back."""
    name, proxy = pick_proxy(scene, dice)
    longest, seconds = dice.choice(DELAYS), dice.uniform(1, 5)
    proxy.slow_down(longest, dice)
    scene.wait(seconds)
    proxy.slow_down(0, dice)
    return f"{name} (up to {longest * 1000:.0f} ms)"


def hold_up(scene: Scene, dice: random.Random) -> str:
    """For some seconds nothing arrives at a server, or nothing from it; then it does, or breaks."""
    name, proxy = pick_proxy(scene, dice)
    way, seconds, deliver = dice.choice(list(Way)), dice.uniform(0.5, 8), dice.random() < 0.5
    proxy.hold_up(way)
    scene.wait(seconds)
    proxy.clear_up(way, deliver=deliver)
    return f"{name} ({way.value}, then {'delivered' if deliver else 'broken'})"
