"""Group membership by the classic protocol: join, sync, heartbeat, leave, generations.

    phase \\ input   join (new or changed)   sync by leader   sync by follower   heartbeat             leave, expiry
    EMPTY           begin a rebalance       unknown member   unknown member     unknown member        unknown member
    PREPARING       take part               rebalancing      rebalancing        rebalancing           go on without
    COMPLETING      begin a rebalance       -> STABLE        wait               ok                    begin a rebalance
    STABLE          begin a rebalance       assignment       assignment         ok                    begin a rebalance

A rebalance completes when every member has joined, or its deadline has come. Then the generation counts up, and
everybody who waits is told. In COMPLETING the leader owes the assignments; a deadline runs for that too. A member that
joins again with nothing changed in COMPLETING or STABLE is told the present generation (its answer was lost); a leader
that joins again in STABLE wants a new assignment.

Static members (KIP-345) carry an instance id, which outlives the process: whoever joins under it without a member id
takes the place of the member that had it, who is fenced from then on.

    phase        a successor joins under a known instance id
    PREPARING    takes part in its predecessor's place
    COMPLETING   begin a rebalance: the leader may be assigning to the predecessor
    STABLE       gets the predecessor's assignment without a rebalance, unless the group's protocol changes by it

A static member that is late for a rebalance stays in the group, and may be assigned something; it goes by its session's
end, or by not fetching its assignment in time.

Each step makes a new frozen `Membership` and emits it as a volatile event. Where a rebalance has ended (in STABLE, or
in EMPTY), the step emits a durable event as well, before anybody is told: a restart goes on from there, and every
session begins anew (decision 0025). A rebalance that has not ended is forgotten, but for the number of its generation.

The rooms: `step` is what each decision does to a membership, `joining` decides on JoinGroup, `belonging` on what
members do afterwards, `leaving` on who goes and on deadlines. What offsets need to know of members is in
`core.committing`.
"""
