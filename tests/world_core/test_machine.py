from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.world_core.machines import write_files
from world_core import machine

MEMINFO = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n"


def test_this_machine_has_something_of_everything(tmp_path: Path) -> None:
    found = machine.look(tmp_path)
    assert 0 < found.cores <= (os.cpu_count() or 1)
    assert 0 < found.memory_free <= found.memory
    assert found.memory > 100 << 20
    assert 0 < found.disk_free <= shutil.disk_usage(tmp_path).total


def test_a_folder_that_is_not_there_yet_lies_on_its_parents_disk(tmp_path: Path) -> None:
    there = machine.look(tmp_path).disk_free
    assert abs(machine.look(tmp_path / "a" / "b").disk_free - there) < 1 << 30


def test_without_groups_the_hardware_decides(tmp_path: Path) -> None:
    root = write_files(tmp_path, {"proc/meminfo": MEMINFO})
    found = machine.look(tmp_path, root=root)
    assert (found.memory, found.memory_free) == (16_000_000 * 1024, 8_000_000 * 1024)
    assert found.memory_source == "hardware"


def test_a_group_of_version_2_limits_memory_and_cores(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/app/inner"
    root = write_files(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/app/inner\n",
            f"{group}/memory.max": "max\n",
            "sys/fs/cgroup/app/memory.max": "1000000000\n",
            "sys/fs/cgroup/app/memory.current": "400000000\n",
            "sys/fs/cgroup/app/memory.stat": "anon 1\ninactive_file 100000000\nactive_file 5\n",
            f"{group}/cpu.max": "50000 100000\n",
        },
    )
    found = machine.look(tmp_path, root=root)
    assert found.memory == 1_000_000_000
    assert found.memory_free == 1_000_000_000 - (400_000_000 - 100_000_005)
    assert found.memory_source == "control group"
    assert found.cores == 0.5


def test_a_group_of_version_1_limits_memory_and_cores(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "4:memory:/box\n1:cpu,cpuacct:/box\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "2000000000\n",
            "sys/fs/cgroup/memory/box/memory.usage_in_bytes": "500000000\n",
            "sys/fs/cgroup/memory/box/memory.stat": "total_inactive_file 7\ninactive_file 3\n",
            "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "25000\n",
            "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
        },
    )
    found = machine.look(tmp_path, root=root)
    assert found.memory == 2_000_000_000
    assert found.memory_free == 1_500_000_007
    assert found.cores == 0.25


def test_a_container_that_sees_its_group_at_the_root_is_limited(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/docker/0123\n",
            "sys/fs/cgroup/memory.max": "300000000\n",
            "sys/fs/cgroup/memory.current": "100000000\n",
        },
    )
    assert machine.look(tmp_path, root=root).memory_free == 200_000_000


@pytest.mark.parametrize("quota", ["max 100000", "-1 100000", "", "0 0"])
def test_no_quota_leaves_all_cores(tmp_path: Path, quota: str) -> None:
    root = write_files(tmp_path, {"proc/meminfo": MEMINFO, "sys/fs/cgroup/cpu.max": quota})
    assert machine.look(tmp_path, root=root).cores == len(os.sched_getaffinity(0))


def test_a_group_that_uses_more_than_it_may_has_nothing_free(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "proc/meminfo": MEMINFO,
            "sys/fs/cgroup/memory.max": "1000\n",
            "sys/fs/cgroup/memory.current": "2000\n",
        },
    )
    assert machine.look(tmp_path, root=root).memory_free == 0


def test_an_address_space_limit_is_the_memory() -> None:
    program = (
        "import resource\n"
        "from pathlib import Path\n"
        "from world_core import machine\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "found = machine.look(Path('.'))\n"
        "print(found.memory, found.memory_free, found.memory_source)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    memory, free, *source = shown.stdout.split()
    assert int(memory) == 1 << 30
    assert int(free) <= 1 << 30
    assert " ".join(source) == "address space limit"


def driver(folder: Path, *lines: str) -> str:
    """Write a command that prints these lines and return its path."""
    path = folder / "smi"
    path.write_text("#!/bin/sh\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_gpus_are_what_the_driver_lists(tmp_path: Path) -> None:
    command = driver(
        tmp_path,
        "echo 'Card A, 80, 70'",
        "echo 'Card B, [N/A], [N/A]'",
        "echo 'Card, C, 40, 40'",
        "echo 'Card D, 40, 0'",
    )
    found = machine.gpus(command)
    assert found == (machine.Gpu("Card A", 80 << 20, 70 << 20), machine.Gpu("Card D", 40 << 20, 0))


def test_no_driver_and_a_failing_one_are_no_gpu(tmp_path: Path) -> None:
    assert machine.gpus(str(tmp_path / "none")) == ()
    assert machine.gpus(driver(tmp_path, "exit 9")) == ()
