"""Group membership by the consumer protocol (KIP-848): the group assigns, members report and follow, by heartbeats.

Epochs: the group's counts whatever changes who should own what (members, subscriptions, topics). Each count leads to a
new target (`assignors`), and each member is led to its part of that (`reconciliation`), at its own pace:

    phase of a member \\ it reports   still owns what it must give up   has given it up, or need not
    STABLE, target's epoch           -                                 nothing to do
    STABLE, an earlier epoch         -> UNREVOKED                      -> the target's epoch, as below
    UNREVOKED                        stays, or is out by its deadline  -> the target's epoch, as below
    UNRELEASED                       -> UNREVOKED                      -> the target's epoch, as below

    In the target's epoch a member gets of its target what nobody holds: STABLE if that is all, else UNRELEASED.

A partition is thus given to its new owner only when its old owner no longer reports it. A member is known by its id and
its epoch: one that comes with another epoch than its own is fenced, gives up everything and joins again, but for the
epoch before if it owns nothing beyond its assignment (its answer was lost). Commits name the epoch as well (KIP-447).

Each change is durable before its member is told of it, and so are the epochs, of which none is given out twice
(decisions 0025 and 0012): what a member holds from before a crash is the present, or is known to be of the past.

The rooms: `heartbeat` decides on a member that joins or goes on, `leaving` on who goes, `step` is what both do to a
group; `subscriptions`, `assignors` and `reconciliation` are functions of plain values.
"""
