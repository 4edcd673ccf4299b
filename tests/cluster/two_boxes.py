"""Boxes of a Ray cluster on this machine; it ends when our stdin does.

  python two_boxes.py PORT CACHE

The first box has a processor, ``train_box`` and the client server at PORT; its address and number
are printed. Each line of stdin adds one with ``deploy_box`` alone; its number and its raylet's
process are printed. It starts in the folder CACHE, where it has its cache.
"""

import os
import sys

from ray.cluster_utils import Cluster

SMALL = {"object_store_memory": 100 * 2**20}
SOON = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}


def main(port, cache):
    head = {
        "num_cpus": 1, "resources": {"train_box": 1}, "include_dashboard": False,
        "ray_client_server_port": int(port), "_system_config": SOON,
    }  # fmt: skip
    cluster = Cluster(initialize_head=True, head_node_args=SMALL | head)
    print("box", cluster.address, cluster.head_node.node_id, flush=True)
    os.environ["PIPELINE_SIMULATOR_CACHE"] = cache
    os.chdir(cache)
    for _ in sys.stdin:
        box = cluster.add_node(**SMALL, num_cpus=0, resources={"deploy_box": 1})
        raylet = box.all_processes["raylet"][0].process.pid
        print("box", box.node_id, raylet, flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
