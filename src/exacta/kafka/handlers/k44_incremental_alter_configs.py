"""IncrementalAlterConfigs: single configurations are set, deleted, appended to, subtracted from (KIP-339)."""

from exacta.kafka.config_alteration import altering
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k44_incremental_alter_configs import AlterConfigsResourceResponse

HANDLER = altering(ApiKey.INCREMENTAL_ALTER_CONFIGS, (0, 1), AlterConfigsResourceResponse, replaces=False)
