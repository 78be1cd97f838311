"""Group membership by the consumer protocol (KIP-848): the group assigns, members report and follow, by heartbeats.

Epochs: the group's epoch grows with every change of members, subscriptions or topics. Each epoch leads to a new target
(`assignors`), and each member is led to its part of the target (`reconciliation`) at its own pace:

    phase of a member \\ it reports   still owns what it must give up   has given it up, or need not
    STABLE, target's epoch           -                                 nothing to do
    STABLE, an earlier epoch         -> UNREVOKED                      -> the target's epoch *
    UNREVOKED                        stays **                          -> the target's epoch *
    UNRELEASED                       -> UNREVOKED                      -> the target's epoch *

* There a member gets of its target what nobody holds: STABLE if that is all, else UNRELEASED.

** Or it is out by its deadline.

So a partition is given to its new owner only when its old owner no longer reports it. A member is known by its id and
its epoch. A member that comes with another epoch is fenced, gives up everything and joins again. The epoch before is
accepted if the member owns nothing beyond its assignment, because then its answer was lost. Commits name the epoch as
well (KIP-447).

Each change is durable before its member learns of it. So are the epochs, and none is given out twice (decisions 0025
and 0012). What a member holds from before a crash is therefore the present, or is known to be of the past.

While a fleet moves from one protocol to the other, a group has members that speak the classic one (`..migration`). They
are led to the same target. They report what they own in JoinGroup, and hear in Heartbeat that they must join again:

    a member that speaks the classic protocol is      a heartbeat is answered    a sync is answered
    STABLE or UNRELEASED, of an earlier epoch         REBALANCE_IN_PROGRESS      REBALANCE_IN_PROGRESS
    UNREVOKED                                         REBALANCE_IN_PROGRESS      its assignment
    UNRELEASED, and what it waits for is free         REBALANCE_IN_PROGRESS      its assignment
    anything else                                     ok                         its assignment

It must join within its rebalance time-out then, and sync within that time after it has joined, or it is out.

The modules: `heartbeat` decides on a member that joins or goes on, `classic_members` on one that speaks the classic
protocol, `leaving` on members that leave, and `step` changes the group for them. `subscriptions`, `assignors` and
`reconciliation` are functions of plain values.
"""
