"""Start a Ray cluster of two nodes; say its address and their numbers; end it with our stdin.

The second has a device and no processor to offer.
"""

import sys

from ray.cluster_utils import Cluster

small = {"object_store_memory": 100 * 2**20}
cluster = Cluster(
    initialize_head=True,
    head_node_args={
        **small,
        "num_cpus": 1,
        "resources": {"train_box": 1},
        "include_dashboard": False,
    },
)
other = cluster.add_node(**small, num_cpus=0, resources={"deploy_box": 1})
cluster.wait_for_nodes()
print(cluster.address, cluster.head_node.node_id, other.node_id, flush=True)
sys.stdin.read()
cluster.shutdown()
