"""The names and addresses by which other machines may reach this one."""

from __future__ import annotations

import socket

import psutil


def addresses(host: str | None, port: int, *, loopback: bool) -> tuple[str, ...]:
    """The addresses at which peers may reach this machine, the likeliest first.

    Args:
        host: the only name that peers try besides the loopback; None: all names and addresses.
        loopback: whether all peers are on this machine.
    """
    if loopback:
        return (f"tcp://127.0.0.1:{port}",)
    names = [host] if host else [*_interface_addresses(), socket.getfqdn()]
    return tuple(f"tcp://{name}:{port}" for name in dict.fromkeys([*names, "127.0.0.1"]))


def _interface_addresses() -> list[str]:
    """IPv4 addresses of interfaces that are up, loopback left out."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    return [
        address.address
        for name, found in psutil.net_if_addrs().items()
        if name in up
        for address in found
        if address.family == socket.AF_INET and not address.address.startswith("127.")
    ]
