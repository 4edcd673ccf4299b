"""Boxes of a Ray cluster on this machine; it ends when our stdin does.

  python two_boxes.py PORT HIDDEN CACHE

The first box has a processor, ``train_box`` and the client server at PORT; its address and number
are printed. Each line of stdin adds one with ``deploy_box`` alone; its number and its raylet's
process are printed. It sees an empty folder in place of HIDDEN, as another machine would, and has
its cache at CACHE.
"""

import ctypes
import os
import sys

from ray.cluster_utils import Cluster

NEW_NAMESPACE, PRIVATE, RECURSIVE = 0x20000, 1 << 18, 1 << 14
"""Of linux/sched.h and linux/mount.h: CLONE_NEWNS, MS_PRIVATE, MS_REC."""
SMALL = {"object_store_memory": 100 * 2**20}
SOON = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}


def hide(folder):
    """Let this process and those that it starts from now on see an empty folder there."""
    system = ctypes.CDLL(None, use_errno=True)
    for failed in (
        system.unshare(NEW_NAMESPACE),
        system.mount(None, b"/", None, PRIVATE | RECURSIVE, None),
        system.mount(b"none", os.fsencode(folder), b"tmpfs", 0, None),
    ):
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def main(port, hidden, cache):
    head = {
        "num_cpus": 1, "resources": {"train_box": 1}, "include_dashboard": False,
        "ray_client_server_port": int(port), "_system_config": SOON,
    }  # fmt: skip
    cluster = Cluster(initialize_head=True, head_node_args=SMALL | head)
    print("box", cluster.address, cluster.head_node.node_id, flush=True)
    hide(hidden)
    os.environ["PIPELINE_SIMULATOR_CACHE"] = cache
    for _ in sys.stdin:
        box = cluster.add_node(**SMALL, num_cpus=0, resources={"deploy_box": 1})
        raylet = box.all_processes["raylet"][0].process.pid
        print("box", box.node_id, raylet, flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
