"""A model of the Ick in plain Python: one member at a time, and nothing clever."""

from dataclasses import dataclass, field

Pairs = list[tuple[float, str]]
Scores = dict[str, float]


@dataclass
class IckOracle:
    """The two sets of an Ick, each a dict from members to scores."""

    there: bool = False
    pset: Scores = field(default_factory=dict)
    cset: Scores = field(default_factory=dict)

    def add(self, pairs: Pairs) -> tuple[int, int]:
        self.there = True
        added = lowered = 0
        for score, member in pairs:
            if member not in self.pset:
                self.pset[member] = score
                added += 1
            elif score < self.pset[member]:
                self.pset[member] = score
                lowered += 1
        return added, lowered

    def commit(self, members: list[str]) -> int:
        self.there = True
        return sum(self.cset.pop(member, None) is not None for member in members)

    def reserve(self, size: int, *, backwash: bool = False) -> list[tuple[str, float]]:
        self.there = True
        if backwash:
            for member in list(self.cset):
                move(member, self.cset, self.pset)
        for member, _ in in_order(self.pset):
            if len(self.cset) >= size:
                break
            move(member, self.pset, self.cset)
        return in_order(self.cset)[:size]

    def stats(self) -> dict[str, float] | None:
        """The statistics, without keys and version."""
        if not self.there:
            return None
        stats: dict[str, float] = {}
        scores = list(self.pset.values()), list(self.cset.values())
        for name, of in zip(
            ("pset", "cset", "total"), (*scores, scores[0] + scores[1]), strict=True
        ):
            stats[f"{name}_size"] = len(of)
            if of:
                stats |= {f"{name}_min": min(of), f"{name}_max": max(of)}
        return stats

    def delete(self) -> int:
        keys = self.there + bool(self.pset) + bool(self.cset)
        self.there, self.pset, self.cset = False, {}, {}
        return keys


def in_order(scores: Scores) -> list[tuple[str, float]]:
    """By score, then by the member's bytes."""
    return sorted(scores.items(), key=lambda pair: (pair[1], pair[0].encode()))


def move(member: str, source: Scores, target: Scores) -> None:
    score = source.pop(member)
    target[member] = min(score, target.get(member, score))
