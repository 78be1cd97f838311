"""AlterConfigs replaces all configurations of a resource (it is older than IncrementalAlterConfigs)."""

from exacta.kafka.config_alteration import altering
from exacta.protocol.kafka.apis import ApiKey
from exacta.protocol.kafka.messages.k33_alter_configs import AlterConfigsResourceResponse

HANDLER = altering(ApiKey.ALTER_CONFIGS, (0, 2), AlterConfigsResourceResponse, replaces=True)
