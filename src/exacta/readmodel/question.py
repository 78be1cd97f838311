"""The questions as they are sent: as JSON whose `type` tells them apart."""

from exacta.readmodel.cluster import AskCluster
from exacta.readmodel.groups import AskLag
from exacta.readmodel.subscriptions import AskSubscriptions
from exacta.readmodel.transactions import AskTransactions

Question = AskTransactions | AskLag | AskSubscriptions | AskCluster
