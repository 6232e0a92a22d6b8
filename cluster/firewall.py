"""What docs/cluster.md calls who connects to whom, as rules of nftables: all else is refused.

Every machine has rules of its own. They count the connections that they refuse; and they can cut it
off from another one, for a while, as a broken switch would: packets vanish, nobody is told.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cluster.network import Host, NoHosts

RULES = """
table inet rides {{
    set cut_off {{ type ipv4_addr; }}
    counter refused {{ }}
    chain input {{
        type filter hook input priority 0; policy drop;
        iif lo accept
        ip saddr @cut_off drop
        ct state established,related accept
{accepted}
        meta l4proto tcp counter name refused reject with tcp reset
    }}
    chain output {{
        type filter hook output priority 0; policy accept;
        ip daddr @cut_off drop
    }}
}}
"""
ACCEPT = "        ip saddr {{ {senders} }} tcp dport {port} accept"


class Door(NamedTuple):
    """A port of one kind of machine that other kinds may connect to."""

    kind: str
    port: int
    senders: frozenset[str]


def door(kind: str, port: int, *senders: str) -> Door:
    return Door(kind, port, frozenset(senders))


# As docs/cluster.md has it; a test compares both.
DOORS = (
    door("master", 7077, "driver", "worker"),
    door("driver", 7080, "worker"),
    door("driver", 7081, "worker"),
    door("worker", 7082, "driver", "worker"),
    door("worker", 7083, "master"),
    door("postgres", 5432, "driver", "worker"),
)


def require_nft() -> None:
    """Raises NoHosts."""
    if not shutil.which("nft"):
        raise NoHosts("it takes nft to keep all ports closed but some (Debian: nftables)")


def close(host: Host, kind: str, addresses: Mapping[str, Sequence[str]]) -> None:
    """Close all ports of a host but the DOORS of its kind, to the `addresses` of each kind."""
    accepted = [
        ACCEPT.format(senders=", ".join(senders), port=door.port)
        for door in DOORS
        if door.kind == kind and (senders := _of(door.senders, addresses))
    ]
    _nft(host, "-f", "-", rules=RULES.format(accepted="\n".join(accepted)))


def cut_off(host: Host, address: str) -> None:
    """From now on its packets to this address vanish, and those from there."""
    _nft(host, "add", "element", "inet", "rides", "cut_off", f"{{ {address} }}")


def join_again(host: Host, address: str) -> None:
    _nft(host, "delete", "element", "inet", "rides", "cut_off", f"{{ {address} }}")


def refused(host: Host) -> int:
    """How many connections to it were refused so far."""
    told = json.loads(_nft(host, "--json", "list", "counters"))
    [counted] = [each["counter"] for each in told["nftables"] if "counter" in each]
    packets: int = counted["packets"]
    return packets


def _of(kinds: frozenset[str], addresses: Mapping[str, Sequence[str]]) -> list[str]:
    return [address for kind in sorted(kinds) for address in addresses.get(kind, ())]


def _nft(host: Host, *words: str, rules: str = "") -> str:
    command = [*host.within, "nft", *words]
    done = subprocess.run(command, input=rules, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoHosts(f"nft {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
