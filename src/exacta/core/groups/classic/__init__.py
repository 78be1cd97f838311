"""Group membership by the classic protocol: join, sync, heartbeat, leave, generations.

    phase \\ input   join (new or changed)   sync by leader   sync by follower   heartbeat             leave, expiry
    EMPTY           begin a rebalance       unknown member   unknown member     unknown member        unknown member
    PREPARING       take part               rebalancing      rebalancing        rebalancing           go on without
    COMPLETING      begin a rebalance       -> STABLE        wait               ok                    begin a rebalance
    STABLE          begin a rebalance       assignment       assignment         ok                    begin a rebalance

A rebalance completes when every member has joined, or its deadline has come. Then the generation counts up, and all
waiting members are answered. In COMPLETING the leader owes the assignments; a deadline runs for that too. A member that
joins again in COMPLETING or STABLE, with nothing changed, gets the present generation, because its answer was lost. A
leader that joins again in STABLE wants a new assignment.

Static members (KIP-345) have an instance id, which outlives the process. A member that joins under a known instance id
without a member id takes the place of the member that had it. That member is fenced from then on.

    phase         a successor joins under a known instance id
    PREPARING     take part
    COMPLETING    begin a rebalance
    STABLE        no rebalance *

In PREPARING it takes part in its predecessor's place. In COMPLETING the leader may be assigning to the predecessor.

* It gets the predecessor's assignment, unless the group's protocol changes by it.

A static member that is late for a rebalance stays in the group, and may be assigned something. It is removed when its
session ends, or when it does not fetch its assignment in time.

Each step makes a new frozen `Membership` and emits it as a volatile event. When a rebalance has ended (in STABLE, or in
EMPTY), the step also emits a durable event, before any member is answered. A restart goes on from there, and every
session begins again (decision 0025). A restart forgets a rebalance that has not ended, but not its generation number.

The modules: `step` changes a membership for every decision, `joining` decides on JoinGroup, `belonging` on what members
do afterwards, `leaving` on members that leave and on deadlines. `core.groups.committing` checks members that commit.
"""
