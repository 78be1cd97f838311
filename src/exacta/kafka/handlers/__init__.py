"""The APIs that are served, one module each: the directory is the protocol coverage.

A module defines `KEY`, `MIN_VERSION`, `MAX_VERSION` and `handle(broker, request, context, reply)`; nothing awaits.
`NEWER` says what the versions are about that are known and not served.
`advertised_max_version(configuration)` is there where the configuration may offer less than is served.
`PLAIN_ERROR` is the response class where an error code alone is a whole answer in every version.
"""

from exacta.kafka.handler import Handler, handler_of
from exacta.kafka.handlers import (
    k00_produce,
    k01_fetch,
    k02_list_offsets,
    k03_metadata,
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
    k15_describe_groups,
    k16_list_groups,
    k18_api_versions,
    k19_create_topics,
    k20_delete_topics,
    k22_init_producer_id,
    k23_offset_for_leader_epoch,
    k24_add_partitions_to_txn,
    k25_add_offsets_to_txn,
    k26_end_txn,
    k27_write_txn_markers,
    k28_txn_offset_commit,
    k32_describe_configs,
    k33_alter_configs,
    k37_create_partitions,
    k42_delete_groups,
    k44_incremental_alter_configs,
    k47_offset_delete,
    k60_describe_cluster,
    k61_describe_producers,
    k65_describe_transactions,
    k66_list_transactions,
    k74_list_config_resources,
    k17784_end_transactions,
    k17786_explain_transactions,
)

HANDLERS: dict[int, Handler] = {
    int(module.KEY): handler_of(module)
    for module in (
        k00_produce,
        k01_fetch,
        k02_list_offsets,
        k03_metadata,
        k08_offset_commit,
        k09_offset_fetch,
        k10_find_coordinator,
        k11_join_group,
        k12_heartbeat,
        k13_leave_group,
        k14_sync_group,
        k15_describe_groups,
        k16_list_groups,
        k18_api_versions,
        k19_create_topics,
        k20_delete_topics,
        k22_init_producer_id,
        k23_offset_for_leader_epoch,
        k24_add_partitions_to_txn,
        k25_add_offsets_to_txn,
        k26_end_txn,
        k27_write_txn_markers,
        k28_txn_offset_commit,
        k32_describe_configs,
        k33_alter_configs,
        k37_create_partitions,
        k42_delete_groups,
        k44_incremental_alter_configs,
        k47_offset_delete,
        k60_describe_cluster,
        k61_describe_producers,
        k65_describe_transactions,
        k66_list_transactions,
        k74_list_config_resources,
        k17784_end_transactions,
        k17786_explain_transactions,
    )
}
