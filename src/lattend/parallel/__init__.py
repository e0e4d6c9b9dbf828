"""lt.parallel: one rule over many devices: each gets exactly the keys its queries reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import homes, on_first_use

if TYPE_CHECKING:
    from lattend.nn.grid.over_ranks import grid_rnn as grid_rnn
    from lattend.parallel.cluster import Cluster as Cluster
    from lattend.parallel.kv_cache import KVCache as KVCache
    from lattend.parallel.layout import Cut as Cut
    from lattend.parallel.shard_plan import ShardPlan as ShardPlan
    from lattend.parallel.shard_plan import plan as plan
    from lattend.parallel.sharded_attention import attention as attention
    from lattend.parallel.sharded_attention import sharded as sharded
    from lattend.parallel.sharding import positions as positions
    from lattend.parallel.sharding import shard as shard
    from lattend.parallel.sharding import unshard as unshard

_HOME = homes(
    "lattend.parallel",
    {
        "sharded_attention": "attention sharded",
        "sharding": "shard unshard positions",
        "kv_cache": "KVCache",
        "shard_plan": "plan ShardPlan",
        "cluster": "Cluster",
        "layout": "Cut",
    },
) | {"grid_rnn": "lattend.nn.grid.over_ranks"}

__getattr__, __dir__ = on_first_use(globals(), "lattend.parallel", _HOME)
