-- Who holds a partition or a lease draws a random number: it is in the name of his stream, and nobody else's row has it,
-- also when a restored database hands out an epoch for the second time (libs/delivery/incarnation.h).
ALTER TABLE inbox ADD COLUMN incarnation bigint NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN incarnation bigint NOT NULL DEFAULT 0;

-- A stream ends with its owner's time. Those that nothing has come from for days are deleted.
ALTER TABLE inbox_streams ADD COLUMN raised timestamptz NOT NULL DEFAULT now();
-- Sequences below `seq` that have not come: "7-9 12-12".
ALTER TABLE inbox_streams ADD COLUMN gaps text NOT NULL DEFAULT '';

-- The order of commits, also over owners: what an owner left is sent before what its successor says.
ALTER TABLE outbox ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY;

-- outbox_streams is written by earlier versions only. It goes once none of them can run beside this one.
